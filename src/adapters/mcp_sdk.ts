// The package of the Model Context Protocol, server side. Loaded only with the first request for a tool.
export {
  type CallToolResult,
  createMcpHandler,
  type JSONRPCMessage,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
  type ServerEvent,
  type ServerEventBus,
  type Transport as McpTransport,
} from '@modelcontextprotocol/server';
export { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
