/** A service or an agent that is reachable by its host name. */
export interface GatewayRoute {
  hostname: string;
  name: string;
  /** Whether it is an agent: the gateway's pages then name other commands. */
  isAgent: boolean;
  port: number;
  /** Its first process; null: not running. */
  pid: number | null;
  /** Its door accepts connections, whether it is running or not. */
  isDoorOpen: boolean;
  /** An agent that is asleep; a request wakes it. */
  isAsleep: boolean;
  /** An agent whose process is being started. */
  isStarting: boolean;
  /** Sent as `Host` instead of the client's: ollama accepts only addresses. */
  hostHeader: string | null;
}

/** Proxies HTTP and WebSocket to services and agents by host name: docs/reference.md "Gateway". */
export interface GatewayProtocol {
  /** Serves listening sockets of `port`. From now on their descriptors belong to the gateway. */
  listen(message: {
    port: number;
    descriptors: number[];
    agentDomain: string;
    allowedExtensions: string[];
    tokens: string[];
  }): null;
  /** Serves connections accepted before it listened. From now on their descriptors belong to the gateway. */
  adopt(message: { descriptors: number[] }): null;
  /** All services and agents; replaces the previous rows. */
  routes(message: { rows: GatewayRoute[] }): null;
  /** After a reload: the tokens that are never passed on, and the extensions that may call. */
  accessRules(message: { tokens: string[]; allowedExtensions: string[] }): null;
}

/** `routes`, on the front thread, which knows the services and agents. */
export interface RoutesProtocol {
  /** Sends the gateway what has changed. By the reply, its table has every change of before the call. */
  flush(message: null): null;
}
