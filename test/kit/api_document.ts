// Compares real responses with the API's document: it must list the status, and the body must match its
// schema.
import { z } from '../../src/adapters/zod.ts';
import { documentJson } from '../../src/api/openapi.ts';
import { ALL_OPERATIONS } from '../../src/api/operations.ts';

interface Media {
  schema: object;
}
interface Operation {
  responses: Record<string, { content?: Record<string, Media> }>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

const inner = (schema: object): Record<string, z.core.JSONSchema.JSONSchema> =>
  JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/'));

/** Returns a check of responses against `document`. */
export function checkerOf(document: Document) {
  const $defs = inner(document.components.schemas);
  const shapes = new Map<object, z.ZodType>();
  const shapeOf = (schema: object): z.ZodType => {
    const made = shapes.get(schema) ?? z.fromJSONSchema({ ...inner(schema), $defs });
    shapes.set(schema, made);
    return made;
  };
  // A fixed path comes before the pattern that also matches it.
  const fixedFirst = Object.entries(document.paths).sort(
    ([a], [b]) => a.split('{').length - b.split('{').length,
  );
  const paths = fixedFirst.map(([path, operations]) => ({
    operations,
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  }));
  const error: object = { $ref: '#/components/schemas/Error' };

  return (method: string, target: string, status: number, body: unknown): void => {
    const where = `${method} ${target} -> ${status}`;
    const path = target.split('?')[0] ?? '';
    const operation = paths
      .filter(({ pattern }) => pattern.test(path))
      .map(({ operations }) => operations[method.toLowerCase()])
      .find((one) => one !== undefined);
    const answer = operation?.responses[String(status)];
    // A request without a row, or one that the parser refused, gets the general error.
    if (operation && !answer) throw new Error(`${where}: this status is not in the document`);
    if (!operation && status < 400) throw new Error(`${where}: this path is not in the document`);
    const schema = answer ? answer.content?.['application/json']?.schema : error;
    if (!schema || body === undefined) return;
    const parsed = shapeOf(schema).safeParse(body);
    if (!parsed.success)
      throw new Error(`${where}: ${z.prettifyError(parsed.error)}\n${JSON.stringify(body)}`);
  };
}

/** The whole document, as the daemon serves it. */
export const DOCUMENT = JSON.parse(Buffer.from(await documentJson(ALL_OPERATIONS)).toString());

/** The check against the whole document. */
export const checkAnswer = checkerOf(DOCUMENT);
