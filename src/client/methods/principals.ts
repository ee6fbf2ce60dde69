// The methods for API tokens and grants: docs/reference.md "API tokens".
import { principals } from '../../api/principals.ts';
import type { NewGrant, NewToken } from '../../api/principals_shapes.ts';
import { type CallOptions, type ChangeOptions, call, type Endpoint } from '../api_call.ts';

/** The methods of the cloud API at `endpoint`. */
export const principalMethods = (endpoint: Endpoint) => ({
  tokens: ({ signal }: CallOptions = {}) => call(endpoint, principals.listTokens, { signal }),
  /** Creates an API token. Its text is in the answer, and cannot be read again. */
  createToken: (token: NewToken, { signal }: CallOptions = {}) =>
    call(endpoint, principals.createToken, { body: token, signal }),
  /** Revokes a token: it is refused from now on, and everything opened with it ends. */
  revokeToken: (name: string, options: ChangeOptions = {}) =>
    call(endpoint, principals.revokeToken, { name, ...options }),
  grants: ({ signal }: CallOptions = {}) => call(endpoint, principals.listGrants, { signal }),
  createGrant: (grant: NewGrant, options: ChangeOptions = {}) =>
    call(endpoint, principals.createGrant, { body: grant, ...options }),
  removeGrant: (id: string, options: ChangeOptions = {}) =>
    call(endpoint, principals.removeGrant, { name: id, ...options }),
});
