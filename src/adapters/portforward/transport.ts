// Port forwarding as the rest of the program sees it: streams to a port of a pod, and what may go wrong with one.
import { isFailure } from '../../runtime/actor.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { oneLine } from '../kube/parse_objects.ts';

/**
 * Why a stream could not be opened, or broke:
 * `unreachable` the API server gives no answer; `denied` it refuses the account; `absent` the pod, or its sandbox, is not
 * there; `refused` nothing takes the connection in the pod; `unsupported` this way of forwarding is not offered; `lost`
 * the connection to the API server broke; `broken` the pod ended the connection with an error; `hostile` the server sent
 * what no server may send.
 */
export type ForwardErrorCode =
  | 'unreachable'
  | 'denied'
  | 'absent'
  | 'refused'
  | 'unsupported'
  | 'lost'
  | 'broken'
  | 'hostile';

export interface ForwardError {
  code: ForwardErrorCode;
  /** For people: what the API server or the node said, cut to one line. */
  text: string;
}

/** Who uses a stream hears this from it. `ended` or `failed` comes once, last, and not after `leave`. */
export interface ForwardStreamEvents {
  /** The far side knows of the stream: from here on bytes may be written, and may have had an effect. */
  onOpened(): void;
  /** `bytes` are the receiver's to keep. */
  onData(bytes: Buffer): void;
  /** What `write` had refused to take more of has gone out. */
  onDrained(): void;
  /** The pod has closed, after all its data. */
  onEnded(): void;
  onFailed(error: ForwardError): void;
}

/** One connection to a port of a pod. Nothing may be called after `ended`, `failed` or `leave`. */
export interface ForwardStream {
  /** False: enough for now, until `drained`. Only once `opened`. */
  write(bytes: Buffer): boolean;
  /** No more will be written. Nodes close the pod's side soon afterwards, whatever it still had to say. */
  end(): void;
  /** Stops and starts `data`. */
  pause(): void;
  resume(): void;
  /** Nobody is there any more: the pod's side is closed, what it still says is dropped, no event follows. */
  destroy(): void;
}

export interface PodName {
  namespace: string;
  name: string;
}

export const forwardPath = (dialer: ClusterDialer, pod: PodName): string =>
  `${dialer.prefix}/api/v1/namespaces/${encodeURIComponent(pod.namespace)}/pods/${encodeURIComponent(pod.name)}/portforward`;

const MAX_TEXT_LENGTH = 600;

/** What a server, a node or Node said, for people. */
export const errorLine = (text: string): string => oneLine(text, MAX_TEXT_LENGTH);

/** What nodes say, in the runtimes there are, when the pod has not seen the connection at all. First match wins. */
const NODE_ERRORS: readonly [pattern: RegExp, code: ForwardErrorCode][] = [
  [/connection refused|connect: |exit status \d+.*socat/i, 'refused'],
  [
    /sandbox|network namespace .* (is closed|no such file)|not running|not found|no such (container|pod)/i,
    'absent',
  ],
  [/timed out waiting for streams/i, 'lost'],
];

/** The setback that the text of an error channel stands for. `isSeen`: the pod has sent something before. */
export function podError(text: string, hasSentData: boolean): ForwardError {
  const known = hasSentData ? undefined : NODE_ERRORS.find(([pattern]) => pattern.test(text));
  return { code: known?.[1] ?? 'broken', text: errorLine(text) };
}

/** The setback of an API server, or of what stands before it, that answers anything but an upgrade. */
export function responseError(status: number, body: string): ForwardError {
  const message = kubeStatusMessage(body);
  const text = errorLine(`${status}: ${message ?? body}`);
  if (status < 300) return { code: 'unsupported', text };
  if (status === 401 || status === 403) return { code: 'denied', text };
  if (message === null) return { code: 'unsupported', text };
  if (status === 404) return { code: 'absent', text };
  return { code: status === 429 || status >= 500 ? 'unreachable' : 'unsupported', text };
}

/** The message of a Kubernetes Status; null when it is none: then a proxy has answered. */
function kubeStatusMessage(body: string): string | null {
  try {
    const status: unknown = JSON.parse(body);
    if (typeof status === 'object' && status !== null && 'message' in status) return String(status.message);
  } catch {
    // Not JSON.
  }
  return null;
}

/** The setback of a connection that could not be made. */
export function dialError(error: unknown): ForwardError {
  const denied = isFailure(error) && error.code === 'cluster_denied';
  const text = errorLine(error instanceof Error ? error.message : String(error));
  return { code: denied ? 'denied' : 'unreachable', text };
}
