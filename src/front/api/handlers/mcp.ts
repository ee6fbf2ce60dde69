// The handler of the Model Context Protocol.
import type { mcp } from '../../../api/mcp.ts';
import type { HandlersOf } from '../handler.ts';

export const mcpHandlers: HandlersOf<typeof mcp> = {
  exchange: (request) => request.app.mcp.serve(request),
};
