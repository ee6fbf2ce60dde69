// The part of /k8s that another Berth answers, as the front asks for it.

export interface RemoteRequest {
  method: string;
  /** With the query. */
  path: string;
  headers: [name: string, value: string][];
  body: string | null;
  /** The answer is read as it comes. */
  isStreamed: boolean;
  signal: AbortSignal;
}

export interface RemoteAnswer {
  status: number;
  /** null: absent. */
  header(name: string): string | null;
  text(): Promise<string>;
  chunks(): AsyncIterable<string>;
}

/** The API of the Berth whose clusters and workloads are shown here. */
export interface RemoteApi {
  /** Rejects with remote_unreachable. */
  send(request: RemoteRequest): Promise<RemoteAnswer>;
}
