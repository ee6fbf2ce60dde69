// The part of node-pty that the host uses, as it is on Unix without an encoding. The package's own types have
// another module name, lack the descriptor, and use strings for bytes.
declare module 'node-pty' {
  export interface Pty {
    readonly pid: number;
    /** The controlling side of the terminal. */
    readonly fd: number;
    onData(listener: (bytes: Buffer) => void): void;
    /** `signal` is 0 or absent when no signal ended the process. */
    onExit(listener: (end: { exitCode: number; signal?: number }) => void): void;
    resize(cols: number, rows: number): void;
  }
  export function spawn(
    file: string,
    args: string[],
    options: { cols: number; rows: number; cwd: string; env: NodeJS.ProcessEnv; encoding: null },
  ): Pty;
}
