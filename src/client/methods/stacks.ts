// The methods for stacks: docs/reference.md "Endpoints".
import { stacks } from '../../api/stacks.ts';
import type { NewStack } from '../../api/stacks_shapes.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';

/** The methods of the daemon at `endpoint`. */
export const stackMethods = (endpoint: Endpoint) => ({
  stacks: async ({ signal }: CallOptions = {}) => (await call(endpoint, stacks.list, { signal })).stacks,
  stack: (name: string, { signal }: CallOptions = {}) => call(endpoint, stacks.read, { name, signal }),
  /** The stack of a folder, registered if it is new. */
  registerStack: (stack: NewStack, { signal }: CallOptions = {}) =>
    call(endpoint, stacks.register, { body: stack, signal }),
  /** Stops and removes all its services, runs its hook `remove`, and forgets it. */
  removeStack: (name: string, { force, signal }: CallOptions & { force?: boolean | undefined } = {}) =>
    call(endpoint, stacks.remove, { name, query: { force }, signal }),
});
