// GET /schema/berth.json: the JSON Schema of the project file, for editors.
import { createHash } from 'node:crypto';
import { loadPart } from '../../settings/load_part.ts';
import { DATA_POLICY } from './reply.ts';
import type { StaticPage } from './static_pages.ts';

let cachedPage: Promise<StaticPage> | undefined;

async function buildSchemaPage(): Promise<StaticPage> {
  const { projectSchema } = await loadPart(() => import('../../project/project_shape.ts'));
  const bytes = Buffer.from(JSON.stringify(projectSchema()));
  const hash = createHash('sha256').update(bytes).digest('base64url');
  return {
    type: 'application/schema+json',
    bytes,
    etag: `"${hash}"`,
    headers: ['Cache-Control', 'no-cache', ...DATA_POLICY],
  };
}

/** The page, if `path` is its path, generated at the first request; null otherwise. */
export function schemaPage(path: string): Promise<StaticPage> | null {
  if (path !== '/schema/berth.json') return null;
  cachedPage ??= buildSchemaPage();
  return cachedPage;
}
