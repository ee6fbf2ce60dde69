// Notices leave the real daemon: signed, once a key and minute, again after failures and kills, and whatever
// one target does, the others get theirs. docs/reference.md "Notices".
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { type Daemon, eventually, isAlive, startDaemon } from '../kit/daemon.ts';

const servers: http.Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Got {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** A receiver that answers with what `answer` says; null: with nothing, ever. */
async function receiver(
  answer: (count: number, request: http.IncomingMessage, body: string) => number | null,
): Promise<{ url: string; got: Got[] }> {
  const got: Got[] = [];
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      got.push({ headers: request.headers, body });
      const status = answer(got.length, request, body);
      if (status !== null) response.writeHead(status, { location: '/elsewhere' }).end('x'.repeat(100_000));
    });
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, got };
}

const SECRET = 'a-secret-of-the-webhook';

const crash = async (daemon: Daemon, name: string): Promise<void> => {
  await daemon.request('POST', '/v1/services', { name, port: null, cmd: 'sleep 0.2; exit 3' });
  await daemon.request('POST', `/v1/services/${name}/start`);
};

const parsed = (got: readonly Got[]) => got.map(({ body }) => JSON.parse(body));

it('notices cannot be forged or delayed by others, and the state of their targets is reported', async () => {
  const good = await receiver((count) => (count === 1 ? 302 : 204));
  const hanging = await receiver(() => null);
  const file = join(folder(), 'notice.json');
  const config = `
[[notify]]
when = { types = ["service.cr*"], names = ["web", "$*"] }
to = { webhook = "${hanging.url}/hangs", secret = "${SECRET}" }
[[notify]]
when = { types = ["service.crashed"] }
to = { webhook = "${good.url}/in", secret = "${SECRET}" }
[[notify]]
when = { types = ["service.crashed"] }
to = { exec = "cat > ${file}.new && mv ${file}.new ${file}" }
`.replace('"$*"', '"shop--*"');
  const daemon = await daemonOf({ config });
  await crash(daemon, 'web');
  await eventually(() => good.got.length === 2 && hanging.got.length === 1);
  const [first, second] = parsed(good.got);
  expect(first).toMatchObject({ type: 'service.crashed', name: 'web', count: 1, data: { exitCode: 3 } });
  // The redirect was no success and was not followed; the second attempt has the same id.
  expect(second).toEqual(first);
  for (const { headers, body } of good.got) {
    const [, time, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['berth-signature'])) ?? [];
    expect(mac).toBe(createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex'));
    expect(headers['berth-notice']).toBe(first.id);
  }
  await eventually(() => existsSync(file));
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ name: 'web', type: 'service.crashed' });
  const { body } = await daemon.request('GET', '/v1/system');
  expect(body.notices).toMatchObject([
    { target: expect.stringMatching(/^webhook 127\.0\.0\.1:\d+$/), pending: 1 },
    { target: expect.stringMatching(/^webhook/), pending: 0, delivered: 1, failed: 1, error: null },
    { target: 'exec', pending: 0, delivered: 1 },
  ]);
  const metrics = (await daemon.request('GET', '/metrics')).text;
  expect(metrics).toMatch(/berth_notices_total\{notify="2",target="exec",result="delivered"\} 1/);
  const everything = [JSON.stringify(body), metrics, daemon.stderr(), daemon.stdout()].join('\n');
  expect(everything).not.toMatch(new RegExp(`${SECRET}|/hangs|/in\\b`));
});

it('notices survive a kill of the daemon, and every target can be tested', async () => {
  const late = await receiver((count) => (count === 1 ? 500 : 200));
  const config = `
[[notify]]
when = { types = ["service.crashed"], for = 1 }
to = { webhook = "${late.url}", secret = "${SECRET}" }
`;
  const daemon = await daemonOf({ config });
  const events = await daemon.events();
  await crash(daemon, 'web');
  await events.until(({ event }) => event === 'service.crashed');
  daemon.signal('SIGKILL');
  await daemon.exited;
  const next = await startDaemon({ stateDir: daemon.stateDir, config });
  await eventually(() => late.got.length === 2);
  const [first, second] = parsed(late.got);
  expect(first).toMatchObject({ name: 'web', type: 'service.crashed' });
  expect(second.id).toBe(first.id);
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: next.stateDir, BERTH_CONFIG: next.configFile });
  expect(await berth(['notify', 'test'], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^✓ webhook 127\.0\.0\.1:\d+ \(\d+ms\)\n$/),
  });
  expect(parsed(late.got)[2]).toMatchObject({ type: 'notice.test' });
  // From now on there are none.
  writeFileSync(next.configFile, 'port = 0\n[gateway]\nport = 0\n');
  next.signal('SIGHUP');
  await eventually(() => next.stderr().includes('were read again'));
  expect((await next.request('GET', '/v1/system')).body.notices).toEqual([]);
});

const ruleOf = (url: string, secret = SECRET, names = 'web'): string =>
  `[[notify]]\nwhen = { types = ["service.crashed"], names = ["${names}"] }
to = { webhook = "${url}", secret = "${secret}" }\n`;

/** Gives the daemon another configuration by a signal, or by a restart. Returns the daemon that has it. */
async function reconfigure(daemon: Daemon, how: 'reload' | 'restart', rules: string): Promise<Daemon> {
  if (how === 'reload') {
    writeFileSync(daemon.configFile, `port = 0\n[gateway]\nport = 0\n${rules}`);
    daemon.signal('SIGHUP');
    return daemon;
  }
  daemon.signal('SIGTERM');
  await daemon.exited;
  return await startDaemon({ stateDir: daemon.stateDir, config: rules });
}

it.each<[what: string, how: 'reload' | 'restart', wrong: (url: string) => string]>([
  ['secret', 'reload', (url) => ruleOf(url, 'wrong')],
  ['secret', 'restart', (url) => ruleOf(url, 'wrong')],
  ['URL', 'reload', (url) => ruleOf(`${url}/wrong`)],
  ['URL', 'restart', (url) => ruleOf(`${url}/wrong`)],
  ['names', 'restart', (url) => ruleOf(url, 'wrong', 'w*')],
])('a waiting notice is delivered once its rule has the right %s (%s)', async (_what, how, wrong) => {
  const isRight = ({ url, headers }: http.IncomingMessage, body: string): boolean => {
    const [, time, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['berth-signature'])) ?? [];
    return url === '/' && mac === createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex');
  };
  const target = await receiver((_count, request, body) => (isRight(request, body) ? 200 : 401));
  const daemon = await daemonOf({ config: wrong(target.url) });
  await crash(daemon, 'web');
  await eventually(() => target.got.length > 0);
  const next = await reconfigure(daemon, how, ruleOf(target.url));
  const [status] = await eventually(async () => {
    const { notices } = (await next.request('GET', '/v1/system')).body;
    return notices[0]?.delivered === 1 && notices;
  });
  expect(status).toMatchObject({ pending: 0, dropped: 0, error: null });
  expect(new Set(parsed(target.got).map(({ id }) => id)).size).toBe(1);
});

it.each<'reload' | 'restart'>(['reload', 'restart'])(
  'a waiting notice is dropped, counted and reported when its rule is removed (%s)',
  async (how) => {
    const target = await receiver(() => 401);
    const daemon = await daemonOf({ config: ruleOf(target.url) });
    await crash(daemon, 'web');
    await eventually(() => target.got.length > 0);
    const next = await reconfigure(daemon, how, '');
    const notices = await eventually(async () => {
      const { body } = await next.request('GET', '/v1/system');
      return body.notices[0]?.target === 'removed rules' && body.notices;
    });
    expect(notices).toMatchObject([{ target: 'removed rules', pending: 0, dropped: 1 }]);
    await eventually(() => next.stderr().includes('notices: dropped because their rule was removed: 1'));
    const last = await reconfigure(next, 'restart', ruleOf(target.url));
    expect((await last.request('GET', '/v1/system')).body.notices).toMatchObject([
      { pending: 0, dropped: 0 },
    ]);
  },
);

it.each([
  ['to = { webhook = "ftp://SECRETHOST/x", secret = "s" }', 'notify[0].to.webhook must be a URL'],
  ['to = { webhook = "http://SECRETHOST/x" }', 'notify[0].to.secret is missing; it must be printable ASCII'],
  ['to = { exec = "SECRETcommand", desktop = true }', 'notify[0].to must have one of'],
  ['to = { ntfy = "https://ntfy.sh/SECRET/topic" }', 'notify[0].to.ntfy must be the URL of a topic'],
  ['to = { desktop = true }\nSECRETkey = 1', 'notify[0] has an unknown key'],
])('notices with %s are refused without showing what is secret', async (line, message) => {
  const config = `[[notify]]\nwhen = { types = ["service.crashed"] }\n${line}\n`;
  const error = await daemonOf({ config }).catch((caught: Error) => caught);
  expect(String(error)).toContain(message);
  expect(String(error).replace('"SECRETkey"', '')).not.toContain('SECRET');
});

it('notices leave no command behind that was running when the daemon ended', async () => {
  const file = join(folder(), 'pid');
  const command = `echo $$ > ${file}.new && mv ${file}.new ${file} && exec sleep 1000`;
  const daemon = await daemonOf({
    config: `[[notify]]\nwhen = { types = ["*"] }\nto = { exec = "${command}" }\n`,
  });
  void daemon.request('POST', '/v1/notices/test').catch(() => undefined);
  const pid = await eventually(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
  expect(isAlive(pid)).toBe(true);
  daemon.signal('SIGTERM');
  expect((await daemon.exited).code).toBe(0);
  await eventually(() => !isAlive(pid));
});
