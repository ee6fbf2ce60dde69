// All that needs zod: in the build one file with it, compiled ahead, and loaded when a request first needs it.
import type { ApiRoute } from './route.ts';

export { checkService, checkSpinup } from './shapes.ts';

export const cloudShapes = () => import('./shapes_cloud.ts');

/** The API's document. */
export const openapi = async (rows: readonly ApiRoute[]): Promise<Uint8Array> =>
  (await import('./openapi.ts')).openapiJson(rows);
