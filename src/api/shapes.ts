// The shapes of bodies and answers, by resource. Everything that needs zod is loaded through this file: in
// the build it is one bundle, loaded when a request first needs it. Each module in it runs at its first use.
import type { Operation } from './operation.ts';
import { RequestBody } from './validation.ts';

export const SHAPES = {
  services: () => import('./services_shapes.ts'),
  groups: () => import('./groups_shapes.ts'),
  events: () => import('./events_shapes.ts'),
  agents: () => import('./agents_shapes.ts'),
  system: () => import('./system_shapes.ts'),
  clusters: () => import('./clusters_shapes.ts'),
  workloads: () => import('./workloads_shapes.ts'),
  tethers: () => import('./tethers_shapes.ts'),
};

/** The modules of shapes. Operations refer to their exports by name. */
export type ResourceShapes = { [R in keyof typeof SHAPES]: Awaited<ReturnType<(typeof SHAPES)[R]>> };

/** The body of `operation`. Rejects for an unknown shape, which the types rule out. */
export async function requestBodyOf({ resource, body, path }: Operation): Promise<RequestBody> {
  const shapes: Readonly<Record<string, unknown>> = await SHAPES[resource]();
  const found = body === null ? null : shapes[body];
  if (!(found instanceof RequestBody)) throw new Error(`${path}: ${resource} has no body ${body}`);
  return found;
}

/** The API's document of `operations`, as JSON. */
export const openapiJson = async (operations: readonly Operation[]): Promise<Uint8Array> =>
  (await import('./openapi.ts')).openapiJson(operations);
