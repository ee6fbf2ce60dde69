// The client for browsers: `import { connect } from '@berth-dev/client/browser'`.
import { type Client, type ClientOptions, createClient } from './create_client.ts';
import { createFetchTransport } from './fetch_transport.ts';

/**
 * A client of the daemon at `options.url`. The page must be served by that daemon, belong to an allowed
 * extension, or have an origin of the daemon's setting `allowed_origins`.
 */
export const connect = (options: ClientOptions): Client => createClient(createFetchTransport(), options);

export * from './public_exports.ts';
