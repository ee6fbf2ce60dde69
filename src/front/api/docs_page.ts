// GET /docs: the API's document as a page for people, without scripts or network resources.
import { createHash } from 'node:crypto';
import { ALL_OPERATIONS } from '../../api/operations.ts';
import { loadPart } from '../../settings/load_part.ts';
import type { StaticPage } from './static_pages.ts';

/** The parts of a JSON schema that the document uses. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  description?: string;
}

type Content = Record<string, { schema?: Schema }>;

interface OperationObject {
  operationId: string;
  tags: string[];
  summary?: string;
  parameters?: { name: string; in: string; required?: boolean; schema: Schema; description?: string }[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content?: Content }>;
}

/** An OpenAPI 3.1 document, as `GET /openapi.json` answers it. */
export interface ApiDocument {
  info: { title: string; version: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, OperationObject>>;
  components: { schemas: Record<string, Schema> };
}

const STYLE = `:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem;
  overflow-wrap: anywhere }
code, h3 { font-family: ui-monospace, monospace }
h2 { margin-top: 2.5rem; border-bottom: 1px solid }
h3 { margin: 1.6rem 0 0 }
table { border-collapse: collapse; margin: .4rem 0 }
td { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0 }
nav a { margin-right: 1rem }`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${STYLE_HASH}'`,
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');
const HEADERS = [
  ...['Cache-Control', 'no-cache'],
  ...['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ...['Referrer-Policy', 'no-referrer'],
];

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (one) => ENTITIES[one] ?? one);
const code = (text: string): string => `<code>${escaped(text)}</code>`;
const anchor = (name: string): string => `shape-${name}`;

/** The type that a schema describes, in words. */
function typeText(schema: Schema): string {
  const { $ref, type, items, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = escaped($ref.slice($ref.lastIndexOf('/') + 1));
    return `<a href="#${anchor(name)}">${name}</a>`;
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => code(JSON.stringify(value))).join(' | ');
  const parts = schema.anyOf ?? schema.oneOf;
  if (parts) return parts.map(typeText).join(' | ');
  if (schema.allOf) return schema.allOf.map(typeText).join(' &amp; ');
  if (items) return `array of ${typeText(items)}`;
  if (schema.properties) return `{ ${fieldList(schema)} }`;
  if (typeof additionalProperties === 'object') return `map to ${typeText(additionalProperties)}`;
  return escaped([type ?? 'any'].flat().join(' | '));
}

/** The fields of an object on one line. */
const fieldList = ({ properties = {}, required = [] }: Schema): string =>
  Object.entries(properties)
    .map(([name, one]) => `${code(required.includes(name) ? name : `${name}?`)}: ${typeText(one)}`)
    .join(', ');

interface FieldRow {
  name: string;
  isRequired: boolean;
  schema: Schema;
  note: string;
}

const rowOf = ({ name, isRequired, schema, note }: FieldRow): string =>
  `<tr><td>${code(name)}<td>${isRequired ? 'required' : ''}<td>${typeText(schema)}<td>${escaped(note)}`;
const table = (rows: readonly FieldRow[]): string =>
  rows.length === 0 ? '' : `<table>${rows.map(rowOf).join('\n')}</table>`;

const fieldRows = ({ properties = {}, required = [] }: Schema): FieldRow[] =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    isRequired: required.includes(name),
    schema,
    note: schema.description ?? '',
  }));

const contentText = (content: Content = {}): string =>
  Object.entries(content)
    .map(([type, { schema }]) => (schema ? typeText(schema) : code(type)))
    .join(', ');

function operationText(method: string, path: string, operation: OperationObject): string {
  const { operationId, summary = '', parameters = [], requestBody, responses } = operation;
  const fields = parameters.map(({ name, required, schema, description, ...where }) => ({
    name,
    isRequired: required === true,
    schema,
    note: description ?? (where.in === 'query' ? '' : `in the ${where.in}`),
  }));
  const answers = Object.entries(responses).map(
    ([status, { description, content }]) =>
      `<tr><td>${status}<td>${contentText(content)}<td>${escaped(description)}`,
  );
  return [
    `<h3 id="${operationId}">${method.toUpperCase()} ${escaped(path)}</h3><p>${escaped(summary)}.</p>`,
    table(fields),
    requestBody ? `<p>Body: ${contentText(requestBody.content)}</p>` : '',
    `<table>${answers.join('\n')}</table>`,
  ].join('\n');
}

/** The page of a document. */
export function docsHtml({ info, tags, paths, components }: ApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    const texts = own.map(({ method, path, operation }) => operationText(method, path, operation));
    return `<h2 id="${name}">${escaped(name)}</h2><p>${escaped(description)}.</p>${texts.join('\n')}`;
  });
  const shapes = Object.entries(components.schemas).map(([name, schema]) => {
    const text = schema.properties ? table(fieldRows(schema)) : `<p>${typeText(schema)}</p>`;
    return `<h3 id="${anchor(name)}">${escaped(name)}</h3>${text}`;
  });
  const links = [...tags.map(({ name }) => name), 'shapes'].map((name) => `<a href="#${name}">${name}</a>`);
  return `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(info.title)} API</title><style>${STYLE}</style>
<h1>${escaped(info.title)} API ${escaped(info.version)}</h1>
<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p><nav>${links.join('\n')}</nav>
${sections.join('\n')}
<h2 id="shapes">shapes</h2>${shapes.join('\n')}</html>
`;
}

let cachedPage: Promise<StaticPage> | undefined;

async function buildPage(): Promise<StaticPage> {
  const { openapiJson } = await loadPart(() => import('../../api/schemas.ts'));
  const document: ApiDocument = JSON.parse(Buffer.from(await openapiJson(ALL_OPERATIONS)).toString('utf8'));
  const bytes = Buffer.from(docsHtml(document));
  const hash = createHash('sha256').update(bytes).digest('base64url');
  return { type: 'text/html; charset=utf-8', bytes, etag: `"${hash}"`, headers: HEADERS };
}

/** The page, if `path` is its path, generated at the first request; null otherwise. */
export function docsPage(path: string): Promise<StaticPage> | null {
  if (path !== '/docs') return null;
  cachedPage ??= buildPage();
  return cachedPage;
}
