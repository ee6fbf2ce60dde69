// Which routes each listener serves.
import { isCloudPath } from './guard.ts';
import { ROUTES, type Route } from './routes.ts';

const HEALTH: readonly string[] = ['/livez', '/readyz'];
/** The paths of a cloud server besides /k8s: docs/reference.md "Cloud server". */
const SERVER: readonly string[] = [...HEALTH, '/metrics', '/openapi.json'];

const cloudAnd = (paths: readonly string[]): readonly Route[] =>
  ROUTES.filter(({ path }) => isCloudPath(path) || paths.includes(path));

export const SERVED = {
  /** The daemon's address, where /k8s is served too. */
  all: ROUTES,
  /** The daemon's address, when /k8s has an address of its own. */
  daemon: ROUTES.filter(({ path }) => !isCloudPath(path)),
  /** The address of /k8s. */
  cloud: cloudAnd(HEALTH),
  /** The address of a cloud server. */
  server: cloudAnd(SERVER),
} as const;
