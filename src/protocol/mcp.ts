// The messages between the front and the thread that serves the Model Context Protocol.

/** A request to `POST /mcp` that the guard has accepted. */
export interface McpRequest {
  /** Chosen by the front; unique among the open requests. */
  id: number;
  /** Where the caller's own API requests would go. */
  url: string;
  cloudUrl: string;
  /** The relevant headers, with lower-case names. */
  headers: [name: string, value: string][];
  body: Uint8Array;
}

export interface McpAnswer {
  status: number;
  /** null: there is no body. */
  contentType: string | null;
  /** null: the body comes as `chunk` messages and ends with `end`. */
  body: Uint8Array | null;
}

/** `mcp`, on the thread of that name. */
export interface McpProtocol {
  /** Answers the request with the rights of its caller. */
  serve(request: McpRequest): McpAnswer;
  /** The client has disconnected. */
  cancel(message: { id: number }): null;
}

/** `mcpcallers`, on the front thread. */
export interface McpCallersProtocol {
  chunk(message: { id: number; bytes: Uint8Array }): null;
  end(message: { id: number }): null;
}
