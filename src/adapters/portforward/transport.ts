// Port forwarding as the rest of the program sees it: streams to a port of a pod, and their errors.
import { isFailure } from '../../runtime/actor.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { oneLine } from '../kube/untrusted_values.ts';

/**
 * Why a stream could not be opened, or broke. `unreachable`: the API server does not answer. `denied`: it
 * refuses the account. `absent`: the pod, or its sandbox, does not exist. `refused`: nothing in the pod
 * accepts the connection. `unsupported`: the cluster does not offer this transport. `lost`: the connection to
 * the API server broke. `broken`: the pod ended the connection with an error. `hostile`: the server violated
 * the protocol.
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
  /** A message for people: the words of the API server or the node, cut to one line. */
  text: string;
}

/** The events of a stream. `onEnded` or `onFailed` comes once and last; neither comes after `destroy`. */
export interface ForwardStreamEvents {
  /** Comes once and first. From now on bytes may be written to `stream`, and may have an effect. */
  onOpened(stream: ForwardStream): void;
  /** The receiver owns `bytes`. */
  onData(bytes: Buffer): void;
  /** `write` may be called again after it has returned false. */
  onDrained(): void;
  /** The pod has closed, and all its data has been delivered. */
  onEnded(): void;
  onFailed(error: ForwardError): void;
}

/** A connection to a port of a pod. No method may be called after `onEnded`, `onFailed` or `destroy`. */
export interface ForwardStream {
  /** False: wait for `onDrained` before writing more. */
  write(bytes: Buffer): boolean;
  /**
   * Nothing more will be written. Nodes then soon close the pod's side too, even if the pod still has data to
   * send.
   */
  end(): void;
  /** Stops and starts `onData`. */
  pause(): void;
  resume(): void;
  /** The user has gone: closes the pod's side, drops whatever it still sends, and stops all events. */
  destroy(): void;
}

/** A stream that can be abandoned, even before it is opened. */
export type Destroyable = Pick<ForwardStream, 'destroy'>;

/** The error of streams whose node died without a sign. */
export const DEAD_PEER: ForwardError = { code: 'lost', text: 'the node does not answer any more' };

export interface PodName {
  namespace: string;
  name: string;
}

/** The error of streams that end because their tether does. */
export const FORWARD_CLOSED: ForwardError = { code: 'lost', text: 'the forward was closed' };

/** The path of the API, with the server's prefix, that forwards to `pod`. */
export const forwardPath = (dialer: ClusterDialer, pod: PodName): string =>
  `${dialer.prefix}/api/v1/namespaces/${encodeURIComponent(pod.namespace)}` +
  `/pods/${encodeURIComponent(pod.name)}/portforward`;

const MAX_TEXT_LENGTH = 600;

/** The words of a server, a node or Node.js as one line for people. */
export const errorLine = (text: string): string => oneLine(text, MAX_TEXT_LENGTH);

/**
 * What nodes say, with any container runtime, when the pod has not seen the connection. The first match wins.
 */
const NODE_ERRORS: readonly [pattern: RegExp, code: ForwardErrorCode][] = [
  [/connection refused|connect: |exit status \d+.*socat/i, 'refused'],
  [
    /sandbox|network namespace .* (is closed|no such file)|not running|not found|no such (container|pod)/i,
    'absent',
  ],
  [/timed out waiting for streams/i, 'lost'],
];

/** Interprets the text of an error channel. After data from the pod the error is always `broken`. */
export function podError(text: string, hasSentData: boolean): ForwardError {
  const known = hasSentData ? undefined : NODE_ERRORS.find(([pattern]) => pattern.test(text));
  return { code: known?.[1] ?? 'broken', text: errorLine(text) };
}

/** The error when an API server, or a proxy in front of it, answers with anything but an upgrade. */
export function responseError(status: number, body: string): ForwardError {
  const message = kubeStatusMessage(body);
  const text = errorLine(`${status}: ${message ?? body}`);
  if (status < 300) return { code: 'unsupported', text };
  if (status === 401 || status === 403) return { code: 'denied', text };
  if (message === null) return { code: 'unsupported', text };
  if (status === 404) return { code: 'absent', text };
  return { code: status === 429 || status >= 500 ? 'unreachable' : 'unsupported', text };
}

/** The message of a Kubernetes Status; null if `body` is not one, which means that a proxy answered. */
function kubeStatusMessage(body: string): string | null {
  try {
    const status: unknown = JSON.parse(body);
    if (typeof status === 'object' && status !== null && 'message' in status) return String(status.message);
  } catch {
    // Not JSON.
  }
  return null;
}

/** The error of a connection that could not be made. */
export function dialError(error: unknown): ForwardError {
  const denied = isFailure(error) && error.code === 'cluster_denied';
  const text = errorLine(error instanceof Error ? error.message : String(error));
  return { code: denied ? 'denied' : 'unreachable', text };
}
