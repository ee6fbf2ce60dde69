// What a request needs zod for is reached through this file. In the build it is a bundle of its own, which
// loads with the first such request.
import type { Operation } from './operation.ts';
import { SHAPES } from './shapes.ts';
import { RequestBody } from './validation.ts';

/** The body that `operation` takes. Rejects where there is none of that name, which types rule out. */
export async function requestBodyOf({ resource, body, path }: Operation): Promise<RequestBody> {
  const shapes: Readonly<Record<string, unknown>> = await SHAPES[resource]();
  const found = body === null ? null : shapes[body];
  if (!(found instanceof RequestBody)) throw new Error(`${path}: ${resource} has no body ${body}`);
  return found;
}

/** The API's document of `operations`, as JSON. */
export const openapiJson = async (operations: readonly Operation[]): Promise<Uint8Array> =>
  (await import('./openapi.ts')).documentJson(operations);
