// The client for Node: `import { connectLocal } from 'berth/client'`.
import { type Client, type ClientOptions, createClient } from './connect.ts';
import { nodeTransport } from './node.ts';

/** A client of the daemon at `options.url`. */
export const connect = (options: ClientOptions): Client => createClient(nodeTransport, options);

export * from './exports.ts';
export { connectLocal, type LocalOptions } from './local.ts';
