// Runs programs for tests that kill them, and small disks that fill up.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { afterThisTest } from './actors.ts';

export interface Program {
  child: ChildProcess;
  /** The lines it has printed so far. */
  lines: string[];
  /** Resolves with the first line that `fits`; rejects with stderr when the program ends first. */
  line(fits: (line: string) => boolean): Promise<string>;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Runs a program and reads its lines. The program does not outlive the test. */
export function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let rest = '';
  let errors = '';
  child.stdout.on('data', (bytes: Buffer) => {
    const parts = (rest + bytes.toString()).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
    for (const look of waiting) look();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    errors += bytes.toString();
  });
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal })),
  );
  afterThisTest(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const line = (fits: (line: string) => boolean): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.find(fits);
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
      void exited.then(() => reject(new Error(`it ended first: ${errors}`)));
    });
  return { child, lines, line, exited };
}

/**
 * A command that runs the shell `script` with a disk of `size` mounted at /mnt. Needs Linux with mount
 * namespaces allowed.
 */
export const onSmallDisk = (size: string, script: string): [string, string[]] => [
  'unshare',
  ['-rm', 'sh', '-c', `mount -t tmpfs -o size=${size} berth /mnt && ${script}`],
];

/** Whether `onSmallDisk` works here. */
export const canMount = (): boolean => {
  const [command, args] = onSmallDisk('64k', 'true');
  return spawnSync(command, args).status === 0;
};

/** Whether system calls can be traced here. */
export const hasStrace = (): boolean => spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;
