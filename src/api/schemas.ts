// What a request needs zod for is reached through this file. In the build it is a bundle of its own, which
// loads with the first such request.
import type { Operation } from './operation.ts';
import { SHAPES } from './shapes.ts';
import { objectShape, RequestBody, validate } from './validation.ts';

const NO_FIELDS = objectShape({});
/** What an operation without a body may be sent all the same. */
const NOTHING = new RequestBody(NO_FIELDS, (value) => {
  validate(NO_FIELDS, value);
  return null;
});

/** The body that `operation` takes. Rejects where there is none of that name, which types rule out. */
export async function requestBodyOf({ resource, body, path }: Operation): Promise<RequestBody> {
  if (body === null) return NOTHING;
  const shapes: Readonly<Record<string, unknown>> = await SHAPES[resource]();
  const found = shapes[body];
  if (!(found instanceof RequestBody)) throw new Error(`${path}: ${resource} has no body ${body}`);
  return found;
}

/** The API's document of `operations`, as JSON. */
export const openapiJson = async (operations: readonly Operation[]): Promise<Uint8Array> =>
  (await import('./openapi.ts')).documentJson(operations);
