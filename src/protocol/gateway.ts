/** A service or an agent that is reachable by its host name. */
export interface GatewayRoute {
  hostname: string;
  name: string;
  /** An agent's pages name other commands than those of a service. */
  isAgent: boolean;
  port: number;
  /** Its first process; null: it does not run. */
  pid: number | null;
  /** Its door takes connections, whether it runs or not. */
  isDoorOpen: boolean;
  /** An agent that sleeps, and is woken by a request. */
  isAsleep: boolean;
  /** Sent as `Host` instead of the client's: ollama answers only to addresses. */
  hostHeader: string | null;
}

/** Proxies HTTP and WebSocket to services and agents by host name: docs/reference.md "Gateway". */
export interface GatewayProtocol {
  /** Serves listening sockets of `port`, whose descriptors are the gateway's own from now on. */
  listen(message: {
    port: number;
    descriptors: number[];
    agentDomain: string;
    allowedExtensions: string[];
    tokens: string[];
  }): null;
  /** Serves connections that were accepted before it listened; their descriptors are the gateway's own. */
  adopt(message: { descriptors: number[] }): null;
  /** All services and agents; replaces the previous rows. */
  routes(message: { rows: GatewayRoute[] }): null;
  /** After a reload: the tokens that are never passed on, and the extensions that may call. */
  accessRules(message: { tokens: string[]; allowedExtensions: string[] }): null;
}
