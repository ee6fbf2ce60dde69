// The client for Node: `import { connectLocal } from '@berth-dev/client'`.
import { type Client, type ClientOptions, createClient } from './create_client.ts';
import { nodeTransport } from './node_transport.ts';

/** A client of the daemon at `options.url`. */
export const connect = (options: ClientOptions): Client => createClient(nodeTransport, options);

export { connectLocal, type LocalOptions } from './local_daemon.ts';
export * from './public_exports.ts';
