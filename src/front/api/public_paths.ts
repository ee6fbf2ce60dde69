// The paths served without a token, because they carry no data.
import { ALL_OPERATIONS } from '../../api/operations.ts';
import { DASHBOARD_FILES } from './dashboard_pages.ts';

const PUBLIC_PATHS: ReadonlySet<string> = new Set([
  ...ALL_OPERATIONS.filter(({ isPublic }) => isPublic).map(({ path }) => path),
  ...DASHBOARD_FILES.keys(),
  '/docs',
]);

/** Whether `path` needs no token. */
export const isPublicPath = (path: string): boolean => PUBLIC_PATHS.has(path) || path.startsWith('/schema/');
