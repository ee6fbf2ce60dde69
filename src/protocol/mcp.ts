// The messages between the front and the thread that serves the Model Context Protocol.

/** A request to `POST /mcp` that the guard has let through. */
export interface McpRequest {
  /** Chosen by the front; one request at a time has it. */
  id: number;
  /** Where the caller's own requests to the API would go. */
  url: string;
  cloudUrl: string;
  /** The headers that matter, with lower-case names. */
  headers: [name: string, value: string][];
  body: Uint8Array;
}

export interface McpAnswer {
  status: number;
  /** null: there is no body. */
  contentType: string | null;
  /** null: the body comes as messages `chunk`, and ends with `end`. */
  body: Uint8Array | null;
}

/** `mcp`, on the thread of that name. */
export interface McpProtocol {
  /** Answers the request with the rights of its caller. */
  serve(request: McpRequest): McpAnswer;
  /** The client has gone. */
  cancel(message: { id: number }): null;
}

/** `mcpcallers`, on the front thread. */
export interface McpCallersProtocol {
  chunk(message: { id: number; bytes: Uint8Array }): null;
  end(message: { id: number }): null;
}
