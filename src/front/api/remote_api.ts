// The part of /k8s that another Berth answers, as the front sees it.

export interface RemoteRequest {
  method: string;
  /** Including the query. */
  path: string;
  headers: [name: string, value: string][];
  body: string | null;
  /** Whether the answer is read as it arrives. */
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
