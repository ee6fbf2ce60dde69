// A stranger on the port of a daemon that was killed gets no token, in no form, from nobody; and everything
// goes on once the daemon is back. docs/reference.md "Server authentication".
import { afterEach, describe, expect, it } from 'vitest';
import { createClient } from '../../src/client/create_client.ts';
import { createFetchTransport } from '../../src/client/fetch_transport.ts';
import { nodeTransport } from '../../src/client/node_transport.ts';
import type { DaemonEvent } from '../../src/client/records.ts';
import { berth, cleanEnv, folder } from '../cli/berth_process.ts';
import { type Daemon, eventually, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { type Stranger, type StrangerAnswer, takePort } from '../kit/stranger.ts';
import { hasChromium, openPage } from './browser.ts';

const TOKEN = 'a-token-that-nobody-else-may-know';
const CLOUD_TOKEN = 'and-one-of-the-cloud-for-nobody-else';
const LIFE = 'AAAAAAAAAAAAAAAAAAAAAA';

const strangers: Stranger[] = [];
afterEach(async () => {
  for (const stranger of strangers.splice(0)) await stranger.leave();
});

async function killed(daemon: Daemon): Promise<void> {
  daemon.signal('SIGKILL');
  await daemon.exited;
}

async function invade(
  port: number,
  answer: (path: string) => StrangerAnswer | Promise<StrangerAnswer>,
): Promise<Stranger> {
  const stranger = await takePort(port, answer);
  strangers.push(stranger);
  return stranger;
}

const ok = (value: unknown): StrangerAnswer => ({ status: 200, body: JSON.stringify(value) });
const isProof = (path: string): boolean => path.includes('/proof?');
const LISTS = { services: [], groups: [], agents: [], events: [], key: null };
const wrongProof = (path: string): StrangerAnswer =>
  ok(isProof(path) ? { proof: 'A'.repeat(43), life: LIFE } : LISTS);

const daemonOn = (port: number, stateDir?: string): Promise<Daemon> =>
  startDaemon({
    config: `port = ${port}\n[auth]\ntoken = "${TOKEN}"\n[cloud]\ntoken = "${CLOUD_TOKEN}"\n`,
    ...(stateDir === undefined ? {} : { stateDir }),
  });

function expectNothingLearnt(heard: string): void {
  expect(heard).not.toBe('');
  expect(heard).not.toMatch(/authorization|bearer/i);
  for (const secret of [TOKEN, CLOUD_TOKEN]) {
    for (const form of ['latin1', 'base64', 'base64url', 'hex'] as const)
      expect(heard).not.toContain(Buffer.from(secret).toString(form));
  }
  // Nothing but requests for a proof: no body and no name of a service either.
  for (const [line] of heard.matchAll(/^[A-Z]+ \S+ HTTP.*$/gm))
    expect(line).toMatch(/^GET \/(v1|k8s)\/proof\?/);
}

describe.each([
  ['that gives a wrong proof', wrongProof],
  ['that says it has no token', (path: string) => ok(isProof(path) ? { proof: null, life: LIFE } : LISTS)],
  [
    'that is like an earlier version',
    () => ({ status: 401, body: '{"code":"unauthorized","message":"no"}' }),
  ],
  ['that knows no such path', () => ({ status: 404, body: '<html>' })],
  ['that answers no JSON', () => ({ status: 200, body: 'hello' })],
])('an impostor %s', (_what, answer) => {
  it.each([
    ['Node', nodeTransport],
    ['browsers', createFetchTransport()],
  ])('gets nothing from the client for %s', async (_name, transport) => {
    const port = freePort();
    const stranger = await invade(port, answer);
    const url = `http://127.0.0.1:${port}`;
    const client = createClient(transport, { url, token: TOKEN, cloudToken: CLOUD_TOKEN });
    const spec = { name: 'web', port: 3000, cmd: 'secret command' };
    const calls = [
      () => client.services(),
      () => client.register(spec),
      () => client.events().next(),
      () => client.followLogs('web').next(),
      () => client.attach('bot', { onOutput: () => {} }),
      () => client.cloud.clusters(),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'unproven', status: 0 });
    expectNothingLearnt(stranger.heard());
  });

  it('gets nothing from the command line', async () => {
    const port = freePort();
    const stranger = await invade(port, answer);
    const env = cleanEnv(folder(), {
      BERTH_URL: `127.0.0.1:${port}`,
      BERTH_AUTH_TOKEN: TOKEN,
      BERTH_CLOUD_TOKEN: CLOUD_TOKEN,
    });
    for (const line of ['ps', 'events', 'open --print', 'k8s clusters', 'add web -p 4000 true']) {
      const { code, stdout, stderr } = await berth(line.split(' '), { env });
      expect([line, code, stdout]).toEqual([line, 6, '']);
      expect(stderr).toContain('the token was not sent');
    }
    expectNothingLearnt(stranger.heard());
  });
});

it('a client refuses a proof that an impostor gets from the daemon on another port', async () => {
  const daemon = await daemonOn(0);
  const port = freePort();
  const stranger = await invade(port, async (path) => {
    const { status, text } = await send(daemon.port, 'GET', path);
    return { status, body: text };
  });
  const client = createClient(nodeTransport, { url: `http://127.0.0.1:${port}`, token: TOKEN });
  await expect(client.services()).rejects.toMatchObject({ code: 'unproven' });
  expectNothingLearnt(stranger.heard());
});

it('a stream outlives an impostor: it requests only a proof, and continues with the daemon', async () => {
  const port = freePort();
  const first = await daemonOn(port);
  const states: string[] = [];
  const leave = new AbortController();
  const seen: DaemonEvent[] = [];
  const client = createClient(nodeTransport, { url: `http://127.0.0.1:${port}`, token: TOKEN });
  const following = (async () => {
    for await (const event of client.events({
      signal: leave.signal,
      onState: (state) => states.push(state.open ? 'open' : state.error.code),
    }))
      seen.push(event);
  })();
  await eventually(() => states.includes('open'));
  await killed(first);
  const stranger = await invade(port, wrongProof);
  await eventually(() => states.includes('unproven'));
  await stranger.leave();
  expectNothingLearnt(stranger.heard());
  const second = await daemonOn(port, first.stateDir);
  await eventually(() => states.filter((state) => state === 'open').length === 2);
  const spec = { name: 'web', port: freePort(), cmd: 'true' };
  await second.request('POST', '/v1/services', spec, { authorization: `Bearer ${TOKEN}` });
  await eventually(() => seen.some(({ type }) => type === 'service.registered'));
  leave.abort();
  await following;
});

it.runIf(hasChromium)(
  `the page requests only a proof from an impostor, and continues with the daemon${hasChromium ? '' : ' (skipped: chromium is not installed)'}`,
  async () => {
    const port = freePort();
    const first = await daemonOn(port);
    const authorization = `Bearer ${TOKEN}`;
    const spec = { name: 'web', port: freePort(), cmd: 'sleep 600' };
    await first.request('POST', '/v1/services', spec, { authorization });
    const { body } = await first.request('POST', '/v1/page-codes', undefined, { authorization });
    const page = await openPage(`http://127.0.0.1:${port}/#code=${body.code}`);
    const connected = page.getByText('connected', { exact: true });
    const start = page.getByRole('button', { name: 'start web', exact: true });
    await start.waitFor();
    await killed(first);
    const stranger = await invade(port, wrongProof);
    await page.getByText('does not know the token').waitFor();
    await start.dispatchEvent('click');
    await page.getByText('the token was not sent').first().waitFor();
    await eventually(async () => (await start.getAttribute('aria-disabled')) === 'false');
    await stranger.leave();
    expectNothingLearnt(stranger.heard());
    const second = await daemonOn(port, first.stateDir);
    await connected.waitFor();
    await page.locator('#login').waitFor({ state: 'detached' });
    await start.click();
    await eventually(
      async () =>
        (await second.request('GET', '/v1/services/web', undefined, { authorization })).body.status ===
        'running',
    );
  },
);
