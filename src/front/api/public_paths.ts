// What is served without a token, because it carries no data.
import { DASHBOARD_FILES } from './dashboard_pages.ts';

const PUBLIC_PATHS: ReadonlySet<string> = new Set([
  '/livez',
  '/readyz',
  '/openapi.json',
  ...DASHBOARD_FILES.keys(),
]);

/** Whether `path` needs no token. */
export const isPublicPath = (path: string): boolean => PUBLIC_PATHS.has(path) || path.startsWith('/schema/');
