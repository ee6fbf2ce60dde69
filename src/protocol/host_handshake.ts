// The first line in each direction on the process host's socket: JSON and a newline, before any frame, in
// every version.

/** The identity of a daemon. */
export interface DaemonProcess {
  daemonPid: number;
  /**
   * Field 22 of /proc/<pid>/stat of the daemon, which tells it from a later process with the same pid; 0:
   * unknown.
   */
  daemonStart: number;
}

export interface Hello extends DaemonProcess {
  protocol: number;
  /** The version of the package. A host without processes exits for a daemon of another version. */
  version: string;
  /** Identifies one run of the daemon; all its threads share it. */
  session: string;
  /** The node at this end of the connection. */
  node: string;
  /**
   * The id of the daemon's state directory (`stateDirId`). A host of another directory refuses it: a copy by
   * hard links shares the socket. Daemons of earlier versions do not send it.
   */
  stateId?: string;
  /** Always 1: hosts of earlier versions refuse a daemon that does not send it. */
  services: number;
}

export type HelloReply =
  | { is: 'welcome'; protocol: number; version: string; hostPid: number }
  /** Another daemon holds this host, so this one must not run. */
  | { is: 'taken'; daemonPid: number }
  /** The host exits at once, because it has no process and is of another version: start a new one. */
  | { is: 'leaving' }
  | { is: 'refused'; reason: string };

/** Maximum length of a first line. */
export const MAX_HELLO_BYTES = 4_096;
/** How long to wait for a first line, in milliseconds. */
export const HELLO_TIMEOUT_MS = 5_000;
