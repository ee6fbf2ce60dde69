// The entry point of everything in a request that needs zod. The build makes it a separate bundle, which the
// first such request loads.
import type { Operation } from './operation.ts';
import { SHAPES } from './shapes.ts';
import { objectShape, RequestBody, validate } from './validation.ts';

const NO_FIELDS = objectShape({});
/** The body that a client may send to an operation without one: an object without fields. */
const NOTHING = new RequestBody(NO_FIELDS, (value) => {
  validate(NO_FIELDS, value);
  return null;
});

/** The body that `operation` takes. Rejects if no body has its name, which the types rule out. */
export async function requestBodyOf({ resource, body, path }: Operation): Promise<RequestBody> {
  if (body === null) return NOTHING;
  const shapes: Readonly<Record<string, unknown>> = await SHAPES[resource]();
  const found = shapes[body];
  if (!(found instanceof RequestBody)) throw new Error(`${path}: ${resource} has no body ${body}`);
  return found;
}

/** The OpenAPI document of `operations`, as JSON. */
export const openapiJson = async (operations: readonly Operation[]): Promise<Uint8Array> =>
  (await import('./openapi.ts')).documentJson(operations);
