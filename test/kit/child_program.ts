// Programs of their own for tests that kill: built from the source into a folder below node_modules, where packages resolve.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll } from 'vitest';
import { afterThisTest } from './actors.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Bundles the TypeScript file at `path`, relative to the repository; gives the path of a module that node can run. */
export async function built(path: string): Promise<string> {
  const cache = join(ROOT, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'berth-actors-'));
  folders.push(folder);
  const outfile = join(folder, `${basename(path, '.ts')}.mjs`);
  await build({
    absWorkingDir: ROOT,
    entryPoints: [path],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  });
  return outfile;
}

export interface Program {
  child: ChildProcess;
  /** The lines it has printed so far. */
  lines: string[];
  /** Resolves with the first line that `fits`; rejects with its stderr when it ends before. */
  line(fits: (line: string) => boolean): Promise<string>;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Runs a program and reads its lines; it does not outlive the test. */
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

/** `script` of a shell on a disk of `size` that is its own, mounted at /mnt: takes a Linux that gives us a mount namespace. */
export const onSmallDisk = (size: string, script: string): [string, string[]] => [
  'unshare',
  ['-rm', 'sh', '-c', `mount -t tmpfs -o size=${size} berth /mnt && ${script}`],
];

export const canMount = (): boolean => {
  const [command, args] = onSmallDisk('64k', 'true');
  return spawnSync(command, args).status === 0;
};
