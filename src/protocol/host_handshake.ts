// The first line each way on the socket of the process host: JSON and a newline, before any frame, in every
// version.

/** Which process a daemon is. */
export interface DaemonProcess {
  daemonPid: number;
  /**
   * Field 22 of /proc/<pid>/stat of the daemon, so that a later process with its pid is not taken for it; 0:
   * not known.
   */
  daemonStart: number;
}

export interface Hello extends DaemonProcess {
  protocol: number;
  /** The version of the package: a host without processes makes room for a daemon of another. */
  version: string;
  /** One daemon's life: all of its threads have the same. */
  session: string;
  /** The node that speaks over this connection. */
  node: string;
  /** Always 1: hosts of earlier versions refuse a daemon that does not send it. */
  services: number;
}

export type HelloReply =
  | { is: 'welcome'; protocol: number; version: string; hostPid: number }
  /** Another daemon has this host: the second one must not run. */
  | { is: 'taken'; daemonPid: number }
  /** It ends at once, because it has no process and is of another version: start a new one. */
  | { is: 'leaving' }
  | { is: 'refused'; reason: string };

/** A first line is never longer. */
export const MAX_HELLO_BYTES = 4_096;
/** How long a first line is waited for, in milliseconds. */
export const HELLO_TIMEOUT_MS = 5_000;
