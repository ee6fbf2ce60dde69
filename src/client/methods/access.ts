// The methods for the page at `/`, and for logins: docs/reference.md "Dashboard sessions", "Login".
import { access } from '../../api/access.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';

export interface PageCodeOptions extends CallOptions {
  /** Also writes a page on disk that takes a browser to the dashboard. */
  file?: boolean;
}

/** The methods of the cloud API at `endpoint`. */
export const loginMethods = (endpoint: Endpoint) => ({
  /** How people log in there. Needs no token. */
  loginSettings: ({ signal }: CallOptions = {}) => call(endpoint, access.readLogin, { signal }),
});

/** The methods of the daemon at `endpoint`. */
export const accessMethods = (endpoint: Endpoint) => ({
  /** A single-use code for the fragment of the dashboard's address. */
  pageCode: ({ file, signal }: PageCodeOptions = {}) =>
    call(endpoint, access.createPageCode, { query: { file }, signal }),
});
