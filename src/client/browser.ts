// The client for browsers: `import { connect } from 'berth/client'` through a bundler ends here.
import { type Client, type ClientOptions, createClient } from './create_client.ts';
import { fetchTransport } from './fetch_transport.ts';

/**
 * A client of the daemon at `options.url`; a page must be served by that daemon or be an allowed extension.
 */
export const connect = (options: ClientOptions): Client => createClient(fetchTransport, options);

export * from './public_exports.ts';
