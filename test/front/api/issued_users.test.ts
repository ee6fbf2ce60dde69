// People with tokens of an issuer, at the real front and a real issuer on loopback.
// docs/reference.md "OpenID Connect".
import { describe, expect, it } from 'vitest';
import { userVerifier } from '../../../src/daemon/user_verifier.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import type { Settings } from '../../../src/settings/config.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { cloud, eventually } from '../../kit/cloud.ts';
import { type Json, kubeDouble, workload } from '../../kit/kube_double.ts';
import {
  hmacJwt,
  type Issuer,
  jwt,
  newKey,
  type SigningKey,
  startIssuer,
  unsignedJwt,
} from '../../kit/oidc_issuer.ts';
import { cloudFront, sse, startFront } from '../kit.ts';

const KEY = newKey('one');
const seconds = (): number => Math.floor(Date.now() / 1_000);

async function api(key: SigningKey = KEY) {
  const issuer = await startIssuer(key);
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('web', 'hello', 3));
  double.put('Deployment', workload('hr', 'pay', 3));
  const views = new CloudViews();
  const settings = {
    cloud: {
      ...{ oidc_issuer: issuer.url, oidc_audience: 'berth' },
      ...{ oidc_subject_claim: 'email', oidc_groups_claim: 'groups' },
    },
  } as unknown as Settings;
  views.principals.verifier = await userVerifier(settings);
  const own = { ownListener: { bind: '127.0.0.1', port: 0 } };
  const front = await startFront({ cloud: cloudFront({ token: 'secret', views, ...own }) });
  const port = front.cloudPort ?? 0;
  const here = await cloud({ world: front, views, events: front.events });
  await here.add(double.kubeconfig, 'one');
  const call = (method: string, path: string, token: string, body?: unknown) =>
    front.request(method, path, { port, body, headers: { Authorization: `Bearer ${token}` } });
  const grant = async (body: Json): Promise<string> => {
    const made = await call('POST', '/k8s/grants', 'secret', body);
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return made.body.id;
  };
  return { issuer, here, front, port, call, grant };
}

const claimsOf = ({ url }: Issuer, more: Json = {}): Json => ({
  ...{ iss: url, aud: 'berth', sub: '17', email: 'anna@example.com', groups: ['shop', 'dev'] },
  ...{ iat: seconds(), exp: seconds() + 600 },
  ...more,
});

const names = (rows: Json[]): string[] => rows.map(({ name }) => name).sort();

describe('a user with a token of the issuer', () => {
  it.each(['ES256', 'RS256'] as const)('has the grants of their name and groups (%s)', async (alg) => {
    const key = newKey('one', alg);
    const { issuer, call, grant } = await api(key);
    const token = jwt(key, claimsOf(issuer));
    await call('GET', '/k8s/clusters', 'secret');
    expect((await call('GET', '/k8s/workloads', token)).body.code).toBe('forbidden');
    await grant({ group: 'shop', role: 'viewer', namespace: 'web' });
    await grant({ group: 'others', role: 'viewer', namespace: 'hr' });
    expect(names((await call('GET', '/k8s/workloads', token)).body)).toEqual(['hello']);
    await grant({ user: 'anna@example.com', role: 'sleeper', namespace: 'web' });
    const { body } = await call('POST', '/k8s/workloads/sleep', token, { selector: '!none' });
    expect(names(body.results)).toEqual(['hello']);
    const log = (await call('GET', '/k8s/events/history', 'secret')).body;
    expect(log.find(({ action }: Json) => action === 'sleepWorkloads')).toMatchObject({
      who: 'user:anna@example.com',
    });
    expect((await call('GET', '/k8s/grants', 'secret')).body).toMatchObject([
      { token: null, user: null, group: 'shop' },
      { token: null, user: null, group: 'others' },
      { token: null, user: 'anna@example.com', group: null },
    ]);
    // Each was verified once: the keys were read once.
    expect(issuer.asked).toEqual(['/.well-known/openid-configuration', '/keys']);
  });

  it('loses open streams with the grant, and when the token expires', async () => {
    const { issuer, port, call, grant } = await api();
    const id = await grant({ group: 'dev', role: 'viewer' });
    await grant({ user: 'anna@example.com', role: 'viewer', namespace: 'web' });
    const token = jwt(KEY, claimsOf(issuer));
    const stream = await sse(port, '/k8s/events', { Authorization: `Bearer ${token}` });
    expect(stream.status).toBe(200);
    await call('DELETE', `/k8s/grants/${id}`, 'secret');
    await stream.closed;
    expect(names((await call('GET', '/k8s/workloads', token)).body)).toEqual(['hello']);
    const short = jwt(KEY, claimsOf(issuer, { exp: seconds() + 2 }));
    const ends = await sse(port, '/k8s/events', { Authorization: `Bearer ${short}` });
    expect(ends.status).toBe(200);
    await ends.closed;
    expect((await call('GET', '/k8s/workloads', short)).status).toBe(401);
  });

  it('keeps streams that are opened at the same time with a new token', async () => {
    const { issuer, port, call, grant } = await api();
    await grant({ user: 'anna@example.com', role: 'viewer' });
    const headers = { Authorization: `Bearer ${jwt(KEY, claimsOf(issuer))}` };
    const streams = await Promise.all([1, 2, 3].map(() => sse(port, '/k8s/events', headers)));
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
    // Whatever is open by rights that have changed is cut by it.
    await call('POST', '/k8s/tokens', 'secret', { name: 'other' });
    const isTold = ({ frames }: (typeof streams)[0]) => frames.some(({ event }) => event === 'token.created');
    await eventually(() => streams.every(isTold));
  });

  it('does not get the stored response of another user, whatever their names and keys', async () => {
    const { here, issuer, port, call, front, grant } = await api();
    const sleep = async (email: string, key: string) => {
      await grant({ user: email, role: 'sleeper' });
      const headers = {
        Authorization: `Bearer ${jwt(KEY, claimsOf(issuer, { email }))}`,
        'Idempotency-Key': key,
      };
      const path = `/k8s/workloads/${here.find('web/hello').id}/sleep`;
      const answer = await front.request('POST', path, { port, headers });
      expect(answer.status).toBe(200);
      return answer.headers['idempotent-replayed'];
    };
    await call('GET', '/k8s/clusters', 'secret');
    expect(await sleep('anna', 'b/c')).toBeUndefined();
    expect(await sleep('anna/b', 'c')).toBeUndefined();
    expect(await sleep('anna/b', 'c')).toBe('true');
  });

  it('cannot cause the keys of the issuer to be read repeatedly', async () => {
    const { issuer, call, grant } = await api();
    await grant({ user: 'anna@example.com', role: 'viewer' });
    expect((await call('GET', '/k8s/clusters', jwt(KEY, claimsOf(issuer)))).status).toBe(200);
    const next = newKey('two');
    issuer.keys = [next];
    const token = jwt(next, claimsOf(issuer));
    expect((await call('GET', '/k8s/clusters', token)).status).toBe(401);
    expect(issuer.asked).toHaveLength(2);
  });

  it('is told to retry while the issuer does not respond, and others continue', async () => {
    const { issuer, call, grant } = await api();
    await grant({ user: 'anna@example.com', role: 'viewer' });
    issuer.isBroken = true;
    const token = jwt(KEY, claimsOf(issuer));
    expect(await call('GET', '/k8s/clusters', token)).toMatchObject({
      status: 503,
      body: { code: 'daemon_busy', message: expect.stringContaining('cannot be read') },
    });
    expect((await call('GET', '/k8s/clusters', 'secret')).status).toBe(200);
    issuer.isBroken = false;
    expect((await call('GET', '/k8s/clusters', token)).status).toBe(200);
  });
});

const WRONG: readonly [what: string, make: (issuer: Issuer) => string][] = [
  ['that nobody has signed', (issuer) => unsignedJwt('one', claimsOf(issuer))],
  ['of another key', (issuer) => jwt({ ...newKey('one'), kid: 'one' }, claimsOf(issuer))],
  ['of a key that is not known', (issuer) => jwt(newKey('three'), claimsOf(issuer))],
  ['without the name of its key', (issuer) => jwt(KEY, claimsOf(issuer), { kid: undefined })],
  [
    'signed with the public key as a password',
    (issuer) => hmacJwt(KEY.publicKey.export({ type: 'spki', format: 'pem' }), 'one', claimsOf(issuer)),
  ],
  ['that has expired', (issuer) => jwt(KEY, claimsOf(issuer, { exp: seconds() - 60 }))],
  ['that never expires', (issuer) => jwt(KEY, claimsOf(issuer, { exp: undefined }))],
  ['that is not valid yet', (issuer) => jwt(KEY, claimsOf(issuer, { nbf: seconds() + 60 }))],
  ['of another issuer', (issuer) => jwt(KEY, claimsOf(issuer, { iss: 'https://evil.example' }))],
  ['for somebody else', (issuer) => jwt(KEY, claimsOf(issuer, { aud: 'other' }))],
  ['of nobody', (issuer) => jwt(KEY, claimsOf(issuer, { email: undefined }))],
  ['of an address with blanks', (issuer) => jwt(KEY, claimsOf(issuer, { email: 'anna example' }))],
  ['of an address that is not confirmed', (issuer) => jwt(KEY, claimsOf(issuer, { email_verified: false }))],
  ['of one that says so in text', (issuer) => jwt(KEY, claimsOf(issuer, { email_verified: 'false' }))],
  ['of one with anything else there', (issuer) => jwt(KEY, claimsOf(issuer, { email_verified: null }))],
  ['with another algorithm in its head', (issuer) => jwt(KEY, claimsOf(issuer), { alg: 'RS256' })],
  ['with something that must be understood', (issuer) => jwt(KEY, claimsOf(issuer), { crit: ['x'], x: 1 })],
  ['that is huge', (issuer) => jwt(KEY, claimsOf(issuer, { more: 'x'.repeat(9_000) }))],
  [
    'with a changed claim',
    (issuer) => {
      const [head = '', , signature = ''] = jwt(KEY, claimsOf(issuer)).split('.');
      const claims = Buffer.from(JSON.stringify(claimsOf(issuer, { groups: ['admins'] }))).toString(
        'base64url',
      );
      return `${head}.${claims}.${signature}`;
    },
  ],
  ['that is garbage', () => 'eyJ.eyJ.eyJ'],
  ['that is nothing', () => '..'],
];

describe('a token', () => {
  it('that is invalid is refused, with a body and without', async () => {
    const { issuer, call, grant } = await api();
    await grant({ user: 'anna@example.com', role: 'admin' });
    expect((await call('GET', '/k8s/clusters', jwt(KEY, claimsOf(issuer)))).status).toBe(200);
    for (const [what, make] of WRONG) {
      const token = make(issuer);
      const read = await call('GET', '/k8s/clusters', token);
      const change = await call('POST', '/k8s/workloads/sleep', token, { selector: 'app' });
      expect([read.status, change.status], `a token ${what}`).toEqual([401, 401]);
    }
  });

  it('of the issuer is accepted only by the listener of the cloud', async () => {
    const { issuer, front, grant } = await api();
    await grant({ user: 'anna@example.com', role: 'admin' });
    const headers = { Authorization: `Bearer ${jwt(KEY, claimsOf(issuer))}` };
    expect((await front.request('GET', '/k8s/clusters', { headers })).status).toBe(404);
  });
});
