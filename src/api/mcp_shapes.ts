// Messages of the Model Context Protocol. The protocol's own package validates them.
import { RequestBody, z } from './validation.ts';

export const McpReply = z
  .looseObject({ jsonrpc: z.literal('2.0') })
  .meta({ id: 'McpMessage', description: 'A JSON-RPC message of the Model Context Protocol' });

export const McpMessage = new RequestBody(McpReply, (value) => McpReply.parse(value));
