// Starts children with posix_spawn: the child borrows the memory of this process until it runs its program.
// Node forks, which copies the page tables at each start, and then each page written. That takes several
// times the processor time, and more with more memory. Node does not know these children, so the caller must
// reap them.
import { constants } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import type { LibraryHandle } from 'koffi';

const { O_RDONLY } = constants;
/** Constants of <spawn.h>, the same in glibc and musl. */
const POSIX_SPAWN_SETSIGDEF = 0x04;
const POSIX_SPAWN_SETSIGMASK = 0x08;
const POSIX_SPAWN_SETSID = 0x80;
/** Enough for posix_spawnattr_t (336 bytes), posix_spawn_file_actions_t (80) and sigset_t (128). */
const STRUCT_BYTES = 512;

export interface ProgramSpec {
  file: string;
  /** Without the name of the program. */
  args: readonly string[];
  cwd: string;
  env: readonly (readonly [key: string, value: string])[];
  /** Descriptors for stdout and stderr. Stdin is /dev/null, and nothing else is open. */
  output: readonly [out: number, err: number];
}

/**
 * Starts a program in a session of its own, with no signal ignored or blocked, and returns its pid. Throws
 * with a `code` when it cannot run. Check `cwd` and `file` first, to be able to say which of them is wrong.
 */
export type PosixSpawn = (program: ProgramSpec) => number;

type NativeCall<A extends unknown[]> = (...args: A) => number;

/**
 * A new session, no blocked signals, and every signal at its default, even the two that glibc reserves and
 * ignores.
 */
function spawnAttributes(call: <A extends unknown[]>(prototype: string) => NativeCall<A>): Buffer {
  const attributes = Buffer.alloc(STRUCT_BYTES);
  call<[Buffer]>('int posix_spawnattr_init(void *)')(attributes);
  const all = Buffer.alloc(STRUCT_BYTES, 0xff);
  call<[Buffer, Buffer]>('int posix_spawnattr_setsigdefault(void *, void *)')(attributes, all);
  const none = Buffer.alloc(STRUCT_BYTES);
  call<[Buffer, Buffer]>('int posix_spawnattr_setsigmask(void *, void *)')(attributes, none);
  const flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID;
  call<[Buffer, number]>('int posix_spawnattr_setflags(void *, short)')(attributes, flags);
  return attributes;
}

/** Looks up the calls in libc. Throws where one is missing. */
export function loadPosixSpawn(library: LibraryHandle): PosixSpawn {
  const call = <A extends unknown[]>(prototype: string): NativeCall<A> => library.func(prototype);
  const spawn = call<[Int32Array, string, Buffer, Buffer, (string | null)[], (string | null)[]]>(
    'int posix_spawn(void *, const char *, void *, void *, const char **, const char **)',
  );
  const actions = 'posix_spawn_file_actions_';
  const init = call<[Buffer]>(`int ${actions}init(void *)`);
  const destroy = call<[Buffer]>(`int ${actions}destroy(void *)`);
  const addChdir = call<[Buffer, string]>(`int ${actions}addchdir_np(void *, const char *)`);
  const addOpen = call<[Buffer, number, string, number, number]>(
    `int ${actions}addopen(void *, int, const char *, int, unsigned int)`,
  );
  const addDup = call<[Buffer, number, number]>(`int ${actions}adddup2(void *, int, int)`);
  const attributes = spawnAttributes(call);
  const steps = Buffer.alloc(STRUCT_BYTES);
  const pid = new Int32Array(1);
  return ({ file, args, cwd, env, output: [out, err] }) => {
    init(steps);
    const added =
      addChdir(steps, cwd) ||
      addOpen(steps, 0, '/dev/null', O_RDONLY, 0) ||
      addDup(steps, out, 1) ||
      addDup(steps, err, 2);
    const rows = env.map(([key, value]) => `${key}=${value}`);
    const error = added || spawn(pid, file, steps, attributes, [file, ...args, null], [...rows, null]);
    destroy(steps);
    if (error === 0) return pid[0] ?? 0;
    const code = getSystemErrorName(-error);
    throw Object.assign(new Error(`spawn ${code}`), { code });
  };
}
