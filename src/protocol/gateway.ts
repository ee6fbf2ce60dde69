/** An agent that can be reached by its host name. */
export interface GatewayRoute {
  hostname: string;
  name: string;
  port: number;
  /** A process lives. */
  isRunning: boolean;
  /** Passed as `Host` instead of the client's: ollama answers only to addresses. */
  hostHeader: string | null;
}

/** Proxies HTTP and WebSocket to agents by host name: docs/reference.md "Gateway". */
export interface GatewayProtocol {
  /** Begins to listen on loopback; `port` 0: any free one. Fails port_in_use. */
  listen(message: { port: number; agentDomain: string; allowedExtensions: string[]; tokens: string[] }): {
    port: number;
  };
  /** All agents there are; replaces what was told before. */
  routes(message: { rows: GatewayRoute[] }): null;
  /** The tokens that are never passed on, and the extensions that may call, after a reload. */
  accessRules(message: { tokens: string[]; allowedExtensions: string[] }): null;
}
