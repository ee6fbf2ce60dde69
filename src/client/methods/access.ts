// The methods for the page at `/`: docs/reference.md "Sessions of the page".
import { access } from '../../api/access.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';

export interface PageCodeOptions extends CallOptions {
  /** Also writes a page on disk that takes a browser to the dashboard. */
  file?: boolean;
}

/** The methods of the daemon at `endpoint`. */
export const accessMethods = (endpoint: Endpoint) => ({
  /** A code for the fragment of the dashboard's address, good once. */
  pageCode: ({ file, signal }: PageCodeOptions = {}) =>
    call(endpoint, access.createPageCode, { query: { file }, signal }),
});
