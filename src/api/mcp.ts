// The endpoint of the Model Context Protocol: docs/reference.md "MCP over HTTP".
import { operationsOf } from './operation.ts';

const operation = operationsOf('mcp');

export const mcp = {
  exchange: operation({
    id: 'exchangeMcpMessage',
    kind: 'relay',
    method: 'POST',
    path: '/mcp',
    agentRight: 'any',
    summary: 'A message of the Model Context Protocol; the response may be an event stream',
    body: 'McpMessage',
    answer: 'McpReply',
    needs: 'mcp',
    isStored: false,
  }),
};
