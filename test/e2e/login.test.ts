// docs/reference.md "Login": the built program, a real cloud server with TLS, and an issuer on loopback.
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withFileLock } from '../../src/adapters/process/file_lock.ts';
import { deferred } from '../../src/runtime/deferred.ts';
import { berth, folder } from '../cli/berth_process.ts';
import { eventually, startDaemon } from '../kit/daemon.ts';
import type { LoginIssuer } from '../kit/login_issuer.ts';
import { type IssuerAnswer, startIssuer } from '../kit/oidc_issuer.ts';
import { loggedIn, makeDue, readJson, team } from './login_team.ts';

/** How many processes have the file open. */
function holdersOf(path: string): number {
  const opens = (pid: string): boolean => {
    try {
      const folder = `/proc/${pid}/fd`;
      return readdirSync(folder).some((fd) => readlinkSync(join(folder, fd)) === path);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && opens(name)).length;
}

/** Begins to run `berth`, whose process can be signalled meanwhile. */
function begin(args: readonly string[], env: Record<string, string>) {
  let send: (signal: NodeJS.Signals) => void = () => undefined;
  const onStart = (given: typeof send): void => {
    send = given;
  };
  return { ran: berth(args, { env, onStart }), kill: (signal: NodeJS.Signals) => send(signal) };
}

/** Has the issuer answer no renewal before the returned function is called. */
function hold(issuer: LoginIssuer): () => void {
  const { promise, resolve } = deferred<void>();
  issuer.held = promise;
  return () => resolve();
}

describe('berth login', () => {
  it('gives a user access to the clusters of the team, until berth logout', async () => {
    const { url, issuer, run, admin, loginFile, state } = await team();
    expect((await run('k8s', 'clusters')).code, 'no daemon runs').toBe(5);
    const first = await run('login', `${url}/`);
    expect(first).toMatchObject({ code: 0, stdout: `logged in at ${url}\n` });
    expect(first.stderr).toContain(`Open ${issuer.url}/activate and enter the code WDJB-MJHT\n`);
    expect(first.stderr, 'without a grant').toContain('you may do nothing there yet');
    expect(statSync(state).mode & 0o777).toBe(0o700);
    expect(statSync(loginFile).mode & 0o777).toBe(0o600);
    expect((await run('k8s', 'clusters')).stderr).toContain('user:anna needs the role viewer');
    await admin('k8s', 'grants', 'add', 'user:anna', 'viewer');
    expect(await run('k8s', 'clusters', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
    expect((await run('ps')).code, 'services are those of this machine').toBe(5);
    expect((await run('k8s', 'clusters', '--url', 'http://127.0.0.1:1')).code, 'another one is named').toBe(
      5,
    );
    const { token, source } = readJson(loginFile);
    const out = await run('logout');
    expect(out).toMatchObject({ code: 0, stdout: `logged out of ${url}\n` });
    expect([existsSync(loginFile), issuer.live.size]).toEqual([false, 0]);
    expect((await run('logout')).stdout).toBe('nobody is logged in\n');
    const said = [first, out].map(({ stdout, stderr }) => stdout + stderr).join('');
    for (const secret of [token, source.refresh_token]) expect(said).not.toContain(secret);
  });

  it.each([
    ['access_denied', 6, 'the login was denied'],
    ['expired_token', 1, 'nobody has confirmed the login in time'],
    ['invalid_grant', 1, 'refuses: "invalid_grant"'],
  ])('ends with %s', async (error, code, says) => {
    const { url, issuer, run, loginFile } = await team();
    issuer.polls = ['authorization_pending', error];
    const ran = await run('login', url);
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(says)]);
    expect([existsSync(loginFile), issuer.polls]).toEqual([false, []]);
  });

  it('polls less often when the issuer requests it, and retries after a temporary failure', async () => {
    const { url, issuer, run } = await team();
    const polledAt: number[] = [];
    const exchange = issuer.routes.get('/token');
    const failures: IssuerAnswer[] = [{ status: 400, body: { error: 'slow_down' } }];
    issuer.routes.set('/token', (form) => {
      polledAt.push(performance.now());
      return failures.shift() ?? (exchange as NonNullable<typeof exchange>)(form);
    });
    expect(await run('login', url)).toMatchObject({ code: 0 });
    const [first = 0, second = 0] = polledAt;
    expect(polledAt).toHaveLength(2);
    expect(second - first).toBeGreaterThan(5_500);
  });

  it('leaves nothing behind when it is interrupted or killed', async () => {
    const { url, issuer, env, loginFile } = await team();
    issuer.isConfirmed = false;
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      issuer.asked = [];
      const { kill, ran } = begin(['login', url], env);
      await eventually(() => issuer.asked.includes('/token'));
      kill(signal);
      const { code, stderr } = await ran;
      expect([code, stderr.split('\n')]).toEqual([
        signal === 'SIGINT' ? 130 : null,
        [expect.any(String), ''],
      ]);
      expect(existsSync(loginFile)).toBe(false);
    }
  });

  it('requires https, a Berth with an issuer, and a user', async () => {
    const { url, run, env } = await team({ hasIssuer: false });
    const none = await run('login', url);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('has no issuer of logins')]);
    const plain = await run('login', 'http://127.0.0.1:11613');
    expect([plain.code, plain.stderr]).toEqual([2, expect.stringContaining('people log in over https')]);
    for (const wrong of [
      'http://berth.example.com',
      'https://berth.example.com/x',
      'ftp://berth.example.com',
    ])
      expect([wrong, (await run('login', wrong)).code]).toEqual([wrong, 2]);
    expect((await run('login')).stderr).toContain('name the Berth');
    const agent = { ...env, BERTH_AGENT_TOKEN: `agent-${'0'.repeat(16)}-a.${'x'.repeat(43)}` };
    expect((await berth(['login', url], { env: agent })).stderr).toContain("is a person's alone");
  });
});

describe('a login', () => {
  it('is renewed before it ends, by one of the processes that use it', async () => {
    const here = await loggedIn();
    const { issuer, run, loginFile, state } = here;
    const before = readJson(loginFile);
    makeDue(here);
    const lock = join(state, 'login.lock');
    const ran = await withFileLock(lock, { timeoutMs: 0, late: () => new Error('it is taken') }, async () => {
      const begun = [run('k8s', 'clusters'), run('k8s', 'clusters'), run('k8s', 'workloads')];
      await eventually(() => holdersOf(lock) === begun.length + 1);
      return begun;
    });
    expect((await Promise.all(ran)).map(({ code, stderr }) => code ?? stderr)).toEqual([0, 0, 0]);
    expect(issuer.shown).toEqual([before.source.refresh_token]);
    const after = readJson(loginFile);
    expect([...issuer.live], 'the new refresh token is kept').toEqual([after.source.refresh_token]);
    expect(after.token).not.toBe(before.token);
    expect(after.source.refresh_at).toBeGreaterThan(Date.now());
    expect(statSync(loginFile).mode & 0o777).toBe(0o600);
  });

  it('is unchanged when a renewal is killed', async () => {
    const here = await loggedIn();
    const { issuer, env, run, loginFile, state } = here;
    makeDue(here);
    const before = readFileSync(loginFile, 'utf8');
    hold(issuer);
    const { kill, ran } = begin(['k8s', 'clusters'], env);
    await eventually(() => issuer.shown.length === 1);
    kill('SIGKILL');
    await ran;
    expect(readFileSync(loginFile, 'utf8')).toBe(before);
    // The killed one's request stays without an answer, so its refresh token is still good.
    issuer.held = Promise.resolve();
    expect(await run('k8s', 'clusters')).toMatchObject({ code: 0 });
    expect(readdirSync(state).sort()).toEqual(['login.json', 'login.lock']);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'keeps the refresh token that arrives after %s, which then ends the command',
    async (signal, code) => {
      const here = await loggedIn();
      const { issuer, env, loginFile } = here;
      makeDue(here, Date.now() - 1);
      const answer = hold(issuer);
      const { kill, ran } = begin(['k8s', 'clusters'], env);
      await eventually(() => issuer.shown.length === 1);
      kill(signal);
      answer();
      expect((await ran).code).toBe(code);
      expect([...issuer.live]).toEqual([readJson(loginFile).source.refresh_token]);
    },
  );

  it('is not used for a request that was cancelled during a slow renewal', async () => {
    const here = await loggedIn();
    const { issuer, env, run } = here;
    makeDue(here);
    const answer = hold(issuer);
    const { kill, ran: cancelled } = begin(['k8s', 'clusters', '--json'], env);
    await eventually(() => issuer.shown.length === 1);
    kill('SIGINT');
    // This one begins later, and waits for the renewal as long as the cancelled one would have.
    expect(await run('k8s', 'clusters', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
    answer();
    expect(await cancelled).toMatchObject({ code: 130, stdout: '' });
  });

  it('reports that a new one is needed when the issuer refuses to renew it, and remains', async () => {
    const here = await loggedIn();
    const { url, issuer, run, loginFile } = here;
    const exchange = issuer.routes.get('/token');
    const error_description = `no ${readJson(loginFile).source.refresh_token}`;
    issuer.routes.set('/token', () => ({ status: 400, body: { error: 'invalid_grant', error_description } }));
    makeDue(here);
    const refused = await run('k8s', 'clusters');
    issuer.routes.set('/token', exchange as NonNullable<typeof exchange>);
    expect(refused.code).toBe(6);
    expect(refused.stderr).toBe(
      `berth: the login at ${url} has ended: the issuer ${issuer.url} refuses: "invalid_grant", "no ..."\n` +
        `Log in again: berth login ${url}\n`,
    );
    expect(existsSync(loginFile)).toBe(true);
    expect(await run('login'), 'where the user was').toMatchObject({ code: 0 });
    expect(await run('k8s', 'clusters')).toMatchObject({ code: 0 });
  });

  it('continues while the issuer is unreachable, until its token expires', async () => {
    const here = await loggedIn();
    const { issuer, run } = here;
    issuer.routes.set('/token', () => ({
      status: 503,
      body: 'no',
      headers: { 'content-type': 'text/plain' },
    }));
    makeDue(here);
    expect(await run('k8s', 'clusters')).toMatchObject({ code: 0 });
    makeDue(here, Date.now() - 1);
    const failed = await run('k8s', 'clusters');
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('is not renewed')]);
    const out = await run('logout');
    expect(out.code).toBe(0);
  });

  it('is refused if others can read it, or if it is a link', async () => {
    const { run, loginFile, state } = await loggedIn();
    chmodSync(loginFile, 0o644);
    const wide = await run('k8s', 'clusters');
    expect([wide.code, wide.stderr]).toEqual([2, expect.stringContaining('others can read it')]);
    chmodSync(loginFile, 0o600);
    renameSync(loginFile, join(state, 'other'));
    symlinkSync('other', loginFile);
    expect((await run('k8s', 'clusters')).code).toBe(2);
    renameSync(join(state, 'other'), loginFile);
    writeFileSync(loginFile, '{"url":"https://berth.example.com"}');
    expect((await run('k8s', 'clusters')).stderr).toContain('is no login');
    chmodSync(state, 0o777);
    expect((await run('logout')).stderr).toContain('others can write to the state directory');
  });

  it('is used by the daemon with cloud.remote', async () => {
    const here = await loggedIn();
    const { url, issuer, env, state } = here;
    const daemon = await startDaemon({
      stateDir: state,
      config: `[cloud]\ntoken = "own"\nremote = "${url}"\n`,
      env,
    });
    const ask = () => daemon.request('GET', '/k8s/clusters', undefined, { Authorization: 'Bearer own' });
    expect(await ask()).toMatchObject({ status: 200, body: [] });
    makeDue(here);
    await Promise.all([ask(), ask()]);
    expect(issuer.shown).toHaveLength(1);
    issuer.live.clear();
    makeDue(here);
    expect(await ask()).toMatchObject({
      status: 502,
      body: { code: 'remote_denied', hint: `Log in again: berth login ${url}` },
    });
    const file = join(state, 'remote-token');
    writeFileSync(file, 'other', { mode: 0o600 });
    const hint = expect.stringContaining('into remote-token');
    expect(await ask()).toMatchObject({ status: 502, body: { code: 'remote_denied', hint } });
    writeFileSync(file, 'cloud');
    expect(await ask()).toMatchObject({ status: 200, body: [] });
    expect(daemon.stderr()).not.toContain(readJson(here.loginFile).token);
  });
});

describe('an API token in place of a login', () => {
  it('is read from a private file or stdin, and gives its own rights', async () => {
    const { url, run, admin, env, loginFile } = await team({ hasIssuer: false });
    const made = await admin('k8s', 'tokens', 'create', 'ci', '--role', 'viewer');
    const token = made.stdout.trim();
    const input = await berth(['login', url, '--token-file', '-'], { env, input: `${token}\n` });
    expect(input).toMatchObject({ code: 0, stdout: `logged in at ${url}\n` });
    expect(readJson(loginFile)).toEqual({ url, token, source: null });
    expect(await run('k8s', 'clusters', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
    const file = join(folder(), 'token');
    writeFileSync(file, token, { mode: 0o644 });
    expect((await run('login', url, '--token-file', file)).stderr).toContain('others can read it');
    chmodSync(file, 0o600);
    expect(await run('login', url, '--token-file', file)).toMatchObject({ code: 0 });
    await admin('k8s', 'tokens', 'revoke', 'ci');
    expect((await run('k8s', 'clusters')).code).toBe(6);
    const revoked = await run('login', url, '--token-file', file);
    expect([revoked.code, revoked.stderr]).toEqual([6, expect.stringContaining('does not take the token')]);
    writeFileSync(file, 'cloud');
    expect((await run('login', url, '--token-file', file)).stderr).toContain('has no API token');
  });
});

const html = { 'content-type': 'text/html' };
const device = (body: object) => ({
  status: 200,
  body: {
    ...{
      device_code: 'the-device',
      user_code: 'WDJB',
      verification_uri: 'https://a.example',
      expires_in: 60,
    },
    ...{ interval: 1, ...body },
  },
});

type Change = (issuer: LoginIssuer, other: string) => void;
const always =
  (path: string, answer: IssuerAnswer): Change =>
  ({ routes }) =>
    void routes.set(path, () => answer);
const redirect =
  (path: string): Change =>
  ({ routes }, other) =>
    void routes.set(path, () => ({ status: 307, body: '', headers: { location: `${other}${path}` } }));
const DISCOVERY = '/.well-known/openid-configuration';

const HOSTILE: readonly [what: string, change: Change][] = [
  ['a page in place of its document', always(DISCOVERY, { status: 200, body: '<html>', headers: html })],
  ['a huge document', always(DISCOVERY, { status: 200, body: `{"a":"${'x'.repeat(1_000_000)}"}` })],
  ['a document that is no object', always(DISCOVERY, { status: 200, body: '[null' })],
  ['another name', ({ document }) => Object.assign(document, { issuer: 'https://evil.example' })],
  [
    'a token endpoint without TLS',
    ({ document }) => Object.assign(document, { token_endpoint: 'http://evil.example/t' }),
  ],
  [
    'a token endpoint that is a file',
    ({ document }) => Object.assign(document, { token_endpoint: 'file:///etc/passwd' }),
  ],
  ['no device flow', ({ document }) => Object.assign(document, { device_authorization_endpoint: undefined })],
  ['its document elsewhere', redirect(DISCOVERY)],
  ['its device endpoint elsewhere', redirect('/device')],
  ['its token endpoint elsewhere', redirect('/token')],
  ['a code that moves the cursor', always('/device', device({ user_code: '\u001b[2J' }))],
  ['a script to open', always('/device', device({ verification_uri: 'javascript:alert(1)' }))],
  ['no code', always('/device', device({ user_code: 7 }))],
  ['a page in place of tokens', always('/token', { status: 404, body: '<html>', headers: html })],
  [
    'a refusal with colours',
    always('/token', { status: 400, body: { error: 'x\u001b[31m', error_description: '\u0007' } }),
  ],
  [
    'a token for somebody else',
    always('/token', {
      status: 200,
      body: { access_token: 'a.eyJhdWQiOiJvdGhlciJ9.b', token_type: 'Bearer' },
    }),
  ],
  ['no token', always('/token', { status: 200, body: { token_type: 'Bearer' } })],
];

describe('a hostile issuer', () => {
  it('logs nobody in, and gets no token', async () => {
    const { url, issuer, run, loginFile } = await team();
    const other = await startIssuer();
    const { document, routes } = issuer;
    for (const [what, change] of HOSTILE) {
      Object.assign(issuer, { document: { ...document }, routes: new Map(routes) });
      change(issuer, other.url);
      const { code, stderr } = await run('login', url);
      expect([what, code, stderr]).toEqual([what, 1, expect.stringMatching(/^[\n -~]+\n$/)]);
      expect(stderr.split('\n').length, what).toBeLessThan(5);
      expect([what, existsSync(loginFile)]).toEqual([what, false]);
    }
    expect(other.asked).toEqual([]);
  });
});
