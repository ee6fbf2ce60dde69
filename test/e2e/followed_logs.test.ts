// docs/reference.md "Logs of many services": a thousand lines a second of fifty services, followed at once by a
// client and by the command line. `BERTH_LOG_LINES` is how many lines each prints, at twenty a second. And
// followers of a daemon that is killed.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { cleanEnv } from '../cli/berth_process.ts';
import { afterThisTest } from '../kit/actors.ts';
import { BIN } from '../kit/built_program.ts';
import { eventually, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';

const SERVICES = 50;
const LINES = Number(process.env['BERTH_LOG_LINES'] ?? 10);
const NAMES = Array.from({ length: SERVICES }, (_, index) => `svc-${index}`);
const PRINTER = `exec perl -e '$| = 1; for (1..${LINES}) { print "line $_\\n"; select(undef, undef, undef, 0.05) } sleep 1000'`;

/** What a follower has seen of each service. */
class Seen {
  private readonly lines = new Map(NAMES.map((name): [string, string[]] => [name, []]));
  private count = 0;

  /** Returns whether nothing more is to come. */
  add({ name, text }: { name: string; text?: string }): boolean {
    if (text === undefined) return false;
    this.lines.get(name)?.push(text);
    this.count += 1;
    return this.count >= SERVICES * LINES;
  }

  /** Those of which lines are lost, doubled or out of order. */
  wrong(): [string, string[]][] {
    const expected = Array.from({ length: LINES }, (_, index) => `line ${index + 1}`).join();
    return [...this.lines].filter(([, lines]) => lines.join() !== expected);
  }
}

it('a followed log loses no line of fifty services that print at once, and shows none twice', {
  timeout: 120_000,
}, async () => {
  const daemon = await startDaemon();
  for (const name of NAMES)
    await daemon.request('POST', '/v1/services', { name, port: null, cmd: PRINTER, group: 'many' });
  const [client, commandLine] = [new Seen(), new Seen()];
  const ended = new AbortController();
  const byClient = async (): Promise<void> => {
    const options = { since: '1970-01-01T00:00:00Z', signal: ended.signal };
    const stream = connect({ url: `http://127.0.0.1:${daemon.port}` }).streamLogs(options);
    for await (const entry of stream) if (client.add('text' in entry ? entry : { name: '' })) ended.abort();
  };
  const byCommandLine = async (): Promise<void> => {
    const env = cleanEnv(newFolder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
    const child = spawn(process.execPath, [BIN, 'logs', '-A', '-f', '-n', 'all', '-o', 'json'], { env });
    for await (const line of createInterface({ input: child.stdout }))
      if (commandLine.add(JSON.parse(line))) child.kill('SIGINT');
  };
  const followed = Promise.all([byClient(), byCommandLine()]);
  await daemon.request('POST', '/v1/groups/many/start');
  await followed;
  expect([client.wrong(), commandLine.wrong()]).toEqual([[], []]);
});

it('a follower that has had nothing yet gets what happens while no daemon runs', async () => {
  const config = `port = ${freePort()}\n`;
  const daemon = await startDaemon({ config });
  const sign = join(newFolder(), 'sign');
  const cmd = `until [ -e ${sign} ]; do sleep 0.02; done; echo the line; sleep 0.1; exit 3`;
  await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd });
  const { body } = await daemon.request('POST', '/v1/services/web/start');
  const env = cleanEnv(newFolder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const calls = [
    ['logs', '-f', '-n', '0', 'web'],
    ['logs', '-f', '-A', '-n', '0', '--grep', 'the line'],
    ['events', '-A', 'web', '--type', 'service.crashed'],
  ];
  const followers = calls.map((call) => spawn(process.execPath, [BIN, ...call], { env }));
  afterThisTest(() => followers.forEach((follower) => void follower.kill('SIGINT')));
  const shown = followers.map(() => '');
  for (const [index, { stdout, stderr }] of followers.entries())
    for (const output of [stdout, stderr]) output.on('data', (text) => (shown[index] += String(text)));
  // Each of them is attached.
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${daemon.port}/metrics`)).text();
  await eventually(async () => (await metrics()).includes(`\nberth_open_streams ${calls.length}\n`));
  daemon.signal('SIGKILL');
  await daemon.exited;
  writeFileSync(sign, '');
  await eventually(() => !isAlive(body.pid));
  await startDaemon({ config, stateDir: daemon.stateDir });
  await eventually(
    () => shown.every((text, index) => text.includes(index < 2 ? 'the line' : 'crashed')),
    () => shown,
  );
});

it('a follower is told of what was deleted while no daemon ran, and goes on', async () => {
  const config = `port = ${freePort()}\n[logs]\nmax_bytes = 65536\nkeep = 1\n`;
  const daemon = await startDaemon({ config });
  const sign = join(newFolder(), 'sign');
  const cmd = `echo the first; until [ -e ${sign} ]; do sleep 0.02; done; seq 100000; echo the last`;
  await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd });
  const { body } = await daemon.request('POST', '/v1/services/web/start');
  const env = cleanEnv(newFolder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const follower = spawn(process.execPath, [BIN, 'logs', '-f', 'web'], { env });
  afterThisTest(() => void follower.kill('SIGINT'));
  const shown = { stdout: '', stderr: '' };
  for (const from of ['stdout', 'stderr'] as const)
    follower[from].on('data', (text) => (shown[from] += String(text)));
  await eventually(() => shown.stdout === 'the first\n');
  daemon.signal('SIGKILL');
  await daemon.exited;
  writeFileSync(sign, '');
  await eventually(() => !isAlive(body.pid));
  await startDaemon({ config, stateDir: daemon.stateDir });
  await eventually(() => shown.stdout.endsWith('\nthe last\n'));
  const [, lost = ''] = /\nPart of the log of web is no longer kept: (\d+) bytes\n$/.exec(shown.stderr) ?? [];
  const all = ['the first', ...Array.from({ length: 100_000 }, (_, at) => at + 1), 'the last', ''].join('\n');
  expect(shown.stdout.length + Number(lost), shown.stderr).toBe(all.length);
});
