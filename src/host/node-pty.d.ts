// What the host uses of node-pty, as it really is on Unix with no encoding. The package is installed under this name, but its
// own types declare another, without the descriptor and with strings for bytes.
declare module 'node-pty' {
  export interface Pty {
    readonly pid: number;
    /** The terminal's controlling side. */
    readonly fd: number;
    onData(listener: (bytes: Buffer) => void): void;
    /** `signal` is 0 or absent when none ended it. */
    onExit(listener: (end: { exitCode: number; signal?: number }) => void): void;
    resize(cols: number, rows: number): void;
  }
  export function spawn(
    file: string,
    args: string[],
    options: { cols: number; rows: number; cwd: string; env: NodeJS.ProcessEnv; encoding: null },
  ): Pty;
}
