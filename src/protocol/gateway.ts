/** An agent that is reachable by its host name. */
export interface GatewayRoute {
  hostname: string;
  name: string;
  port: number;
  /** Whether a process exists. */
  isRunning: boolean;
  /** Sent as `Host` instead of the client's: ollama answers only to addresses. */
  hostHeader: string | null;
}

/** Proxies HTTP and WebSocket to agents by host name: docs/reference.md "Gateway". */
export interface GatewayProtocol {
  /** Starts to listen on loopback; `port` 0: any free one. Fails port_in_use. */
  listen(message: { port: number; agentDomain: string; allowedExtensions: string[]; tokens: string[] }): {
    port: number;
  };
  /** All agents; replaces the previous rows. */
  routes(message: { rows: GatewayRoute[] }): null;
  /** After a reload: the tokens that are never passed on, and the extensions that may call. */
  accessRules(message: { tokens: string[]; allowedExtensions: string[] }): null;
}
