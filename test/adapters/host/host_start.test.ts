// Whether a daemon may begin before its process host is ready: one daemon at a time, and only where no run
// can exist.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bundle } from '../../kit/bundle.ts';
import {
  after,
  connectDaemon,
  eventually,
  hostsOf,
  isRunning,
  newState,
  useHost,
} from '../../kit/process_host.ts';

useHost();

function newFolder(): string {
  const stateDir = newState();
  mkdirSync(join(stateDir, 'host'), { recursive: true });
  return stateDir;
}

/** How long a daemon waits when another one holds the place. */
const START_DEADLINE_MS = 2_000;

/** A process that asks as a daemon does, and lives until `end`. */
async function asks(
  stateDir: string,
  deadlineMs = START_DEADLINE_MS,
): Promise<{ hostStart: string; end: (signal: NodeJS.Signals) => Promise<void> }> {
  const script = join(stateDir, 'ask.mjs');
  const source = await bundle('src/adapters/host/host_start.ts');
  writeFileSync(
    script,
    `import { decideHostStart } from ${JSON.stringify(source)};
    console.log(await decideHostStart(${JSON.stringify(stateDir)}, ${deadlineMs}, () => {}));
    setInterval(() => {}, 1000);`,
  );
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
  };
  after(() => end('SIGKILL'));
  const [said] = await once(child.stdout, 'data');
  return { hostStart: String(said).trim(), end };
}

const hostStartOf = async (stateDir: string, deadlineMs?: number): Promise<string> => {
  const { hostStart, end } = await asks(stateDir, deadlineMs);
  await end('SIGKILL');
  return hostStart;
};

/** Of a killed process, the first thread may end before others that still keep its sockets open. */
function hasThreads(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}

async function killHosts(stateDir: string): Promise<void> {
  for (const pid of hostsOf(stateDir)) {
    process.kill(pid, 'SIGKILL');
    await eventually(() => !isRunning(pid) && !hasThreads(pid));
  }
}

test('on a new state directory the host may start after the daemon, for one daemon at a time', async () => {
  const stateDir = newFolder();
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const one = await asks(stateDir);
    expect(one.hostStart).toBe('deferred');
    // In vain, however long.
    expect(await hostStartOf(stateDir, 100)).toBe('started');
    expect(await hostStartOf(newFolder())).toBe('deferred');
    // A waiting daemon gets the place when its holder ends.
    const next = asks(stateDir);
    await one.end(signal);
    const { hostStart, end } = await next;
    expect(hostStart).toBe('deferred');
    await end(signal);
  }
});

test.runIf(process.getuid?.() === 0)('an abstract socket of another user blocks no daemon', async () => {
  const [foreign, own] = [newFolder(), newFolder()];
  const nobody = 65_534;
  const { dev, ino } = statSync(foreign, { bigint: true });
  const name = `berth-${dev}-${ino}-`.padEnd(107, '-');
  const script = `require('node:net').createServer().listen('\\0${name}', () => console.log('listening'))`;
  const squatter = spawn(process.execPath, ['-e', script], {
    uid: nobody,
    gid: nobody,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  after(() => void squatter.kill('SIGKILL'));
  await once(squatter.stdout, 'data');
  const holder = await asks(own);
  expect(holder.hostStart).toBe('deferred');
  // A daemon that waits for another one of its own user gets its answer last.
  const answers: string[] = [];
  const waits = asks(own).then(({ hostStart }) => answers.push(`own: ${hostStart}`));
  await asks(foreign).then(({ hostStart }) => answers.push(`foreign: ${hostStart}`));
  await waits;
  expect(answers).toEqual(['foreign: started', 'own: started']);
});

test('a live host is ready', async () => {
  const stateDir = newFolder();
  await connectDaemon(stateDir);
  expect(await hostStartOf(stateDir)).toBe('running');
});

test('a killed host is replaced before the daemon starts while its ledger has a run, also an ended one', async () => {
  const stateDir = newFolder();
  const one = await connectDaemon(stateDir);
  const lives = await one.spawn('lives', 'exec sleep 60');
  await killHosts(stateDir);
  expect(await hostStartOf(stateDir)).toBe('started');
  const next = await connectDaemon(stateDir);
  await next.stop(lives);
  await killHosts(stateDir);
  expect(await hostStartOf(stateDir)).toBe('started');
  const last = await connectDaemon(stateDir);
  await last.host.ask('acknowledge', lives);
  await killHosts(stateDir);
  expect(await hostStartOf(stateDir)).toBe('deferred');
});

test('a killed host is replaced first while a run is alive that its damaged ledger has lost', async () => {
  const stateDir = newFolder();
  const one = await connectDaemon(stateDir);
  const lives = await one.spawn('lives', 'exec sleep 60');
  await killHosts(stateDir);
  truncateSync(join(stateDir, 'host', 'ledger'), 10);
  expect(await hostStartOf(stateDir)).toBe('started');
  const next = await connectDaemon(stateDir);
  await next.stop(lives);
  await next.host.ask('acknowledge', lives);
  await killHosts(stateDir);
  expect(await hostStartOf(stateDir)).toBe('deferred');
});
