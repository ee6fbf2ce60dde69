// The methods for policies: docs/reference.md "Policies".
import { policies } from '../../api/policies.ts';
import type { PolicyBody } from '../../api/policies_shapes.ts';
import { type CallOptions, type ChangeOptions, call, type Endpoint } from '../api_call.ts';

/** The methods of the cloud API at `endpoint`. */
export const policyMethods = (endpoint: Endpoint) => ({
  policies: ({ signal }: CallOptions = {}) => call(endpoint, policies.list, { signal }),
  policy: (name: string, { signal }: CallOptions = {}) => call(endpoint, policies.read, { name, signal }),
  /** Makes or replaces a policy. */
  setPolicy: (name: string, policy: PolicyBody, options: ChangeOptions = {}) =>
    call(endpoint, policies.put, { name, body: policy, ...options }),
  removePolicy: (name: string, options: ChangeOptions = {}) =>
    call(endpoint, policies.remove, { name, ...options }),
  /** The next ten switches of each workload that it selects. */
  previewPolicy: (name: string, { signal }: CallOptions = {}) =>
    call(endpoint, policies.preview, { name, signal }),
});
