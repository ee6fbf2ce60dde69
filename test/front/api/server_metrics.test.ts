// Who may read /metrics of a cloud server, also at one that stands by: docs/reference.md "Metrics", "Shared database".
import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { formatApiToken } from '../../../src/protocol/api_token.ts';
import type { HolderAddress } from '../../../src/protocol/cloud_views.ts';
import type { Role, StoredGrant } from '../../../src/protocol/grants.ts';
import { tokenSubject } from '../../../src/protocol/principals.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { cloudFront, DAEMON_INFO, type Running, startFront } from '../kit.ts';

/** An API token and how it is stored. */
function apiToken(name: string, role: Role, scope: Partial<StoredGrant> = {}) {
  const [id, grantId] = [newUlid(Date.now()), newUlid(Date.now())];
  const text = formatApiToken(id, 'x'.repeat(43));
  const hash = createHash('sha256').update(text).digest('base64url');
  const made = { createdAt: 1, createdBy: 'token' };
  const row = { id, name, hash, ...made, expiresAt: null, lastUsedAt: null };
  const everything = { clusterId: null, namespace: null, labels: null };
  const grant: StoredGrant = {
    id: grantId,
    subject: tokenSubject(id),
    role,
    ...everything,
    ...scope,
    ...made,
  };
  return { text, row, grant };
}

const viewer = apiToken('prometheus', 'viewer');
const ofCluster = apiToken('part', 'admin', { clusterId: newUlid(1) });
const ofLabels = apiToken('labels', 'admin', { labels: 'app=web' });
const KNOWN = [viewer, ofCluster, ofLabels];
const ALL = { tokens: KNOWN.map(({ row }) => row), grants: KNOWN.map(({ grant }) => grant) };

/** A cloud server whose metrics name this version. */
async function server(version: string): Promise<{ views: CloudViews; front: Running }> {
  const views = new CloudViews();
  views.principals.isExpected = true;
  const ownListener = { bind: '127.0.0.1', port: 0 };
  const cloud = cloudFront({ views, ownListener });
  const front = await startFront({ serves: 'cloud', cloud, daemonInfo: { ...DAEMON_INFO, version } });
  return { views, front };
}

const standBy = (views: CloudViews, holder: HolderAddress | null): void =>
  views.markUnavailable('standing_by', 'this Berth stands by: a has the clusters', 'a hint', holder);

/** The version in the metrics, or the error. */
async function read({ front }: { front: Running }, token: string, headers: Record<string, string> = {}) {
  const asked = { headers: { ...headers, Authorization: `Bearer ${token}` } };
  const { status, text, body } = await front.request('GET', '/metrics', asked);
  return status === 200
    ? /berth_build_info\{version="(.*)"\} 1/.exec(text)?.[1]
    : [status, body.code, body.message];
}

const missing = ({ row: { name } }: { row: { name: string } }) => [
  ...[403, 'forbidden'],
  `token:${name} needs the role viewer for all clusters`,
];

describe('the metrics of a cloud server', () => {
  it('may be read with the cloud token, and by a viewer of all clusters', async () => {
    const holder = await server('1.0.0');
    holder.views.principals.set(ALL);
    expect([await read(holder, 'cloud'), await read(holder, viewer.text)]).toEqual(['1.0.0', '1.0.0']);
    for (const part of [ofCluster, ofLabels]) expect(await read(holder, part.text)).toEqual(missing(part));
  });
});

describe('a standby', () => {
  it('has the lease holder judge a token, and answers with its own metrics', async () => {
    const [holder, standby] = [await server('1.0.0'), await server('2.0.0')];
    holder.views.principals.set(ALL);
    standBy(standby.views, { host: '127.0.0.1', port: holder.front.port, relayPort: null });
    expect([await read(standby, 'cloud'), await read(standby, viewer.text)]).toEqual(['2.0.0', '2.0.0']);
    for (const part of [ofCluster, ofLabels]) expect(await read(standby, part.text)).toEqual(missing(part));
    const unknown = apiToken('unknown', 'viewer').text;
    expect(await read(standby, unknown)).toEqual([401, 'unauthorized', 'the token is missing or wrong']);
    const passedOn = await read(standby, viewer.text, { 'berth-passed-on': '1' });
    expect(passedOn, 'it asks nobody for another one').toEqual([503, 'standing_by', expect.anything()]);
  });

  it('asks the lease holder for no right but that to read', async () => {
    const standby = await server('2.0.0');
    const asked: string[] = [];
    const holder = http.createServer(({ url = '' }, answer) => void answer.end(String(asked.push(url))));
    await new Promise<void>((resolve) => void holder.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => void holder.close());
    const { port } = holder.address() as AddressInfo;
    standBy(standby.views, { host: '127.0.0.1', port, relayPort: null });
    const headers = { Authorization: `Bearer ${viewer.text}` };
    expect(await standby.front.request('DELETE', '/metrics', { headers })).toMatchObject({
      status: 503,
      body: { code: 'standing_by' },
    });
    expect([await read(standby, viewer.text), asked]).toEqual(['2.0.0', ['/metrics']]);
  });

  it('has the lease holder judge a token of an issuer', async () => {
    const [holder, standby] = [await server('1.0.0'), await server('2.0.0')];
    const user = { subject: 'anna', groups: [], expiresAt: Date.now() + 3_600_000 };
    holder.views.principals.verifier = { verify: async () => user };
    holder.views.principals.set({ tokens: [], grants: [{ ...viewer.grant, subject: 'user:anna' }] });
    standby.views.principals.verifier = { verify: async () => null };
    // The first request of all opens the cloud part.
    await holder.front.request('GET', '/k8s/clusters', { headers: { Authorization: 'Bearer cloud' } });
    standBy(standby.views, { host: '127.0.0.1', port: holder.front.port, relayPort: null });
    expect(await read(standby, 'e30.e30.x')).toBe('2.0.0');
  });

  it('does not accept a token revoked since it had the lease', async () => {
    const [holder, standby] = [await server('1.0.0'), await server('2.0.0')];
    standby.views.principals.set(ALL);
    expect(await read(standby, viewer.text)).toBe('2.0.0');
    holder.views.principals.set({ tokens: [], grants: [] });
    standBy(standby.views, { host: '127.0.0.1', port: holder.front.port, relayPort: null });
    expect(await read(standby, viewer.text)).toEqual([401, 'unauthorized', expect.anything()]);
    standBy(standby.views, null);
    expect(await read(standby, viewer.text)).toEqual([503, 'standing_by', expect.anything()]);
  });

  it('says that it stands by where it cannot ask, and that the lease holder does not answer', async () => {
    const standby = await server('2.0.0');
    standBy(standby.views, null);
    const reason = 'this Berth stands by: a has the clusters';
    expect(await read(standby, viewer.text)).toEqual([503, 'standing_by', reason]);
    const silent = http.createServer((request) => request.socket.destroy());
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    standBy(standby.views, { host: '127.0.0.1', port, relayPort: null });
    const noAnswer = 'the Berth that has the clusters does not answer';
    expect(await read(standby, viewer.text)).toEqual([503, 'daemon_busy', noAnswer]);
    expect(await read(standby, 'cloud')).toBe('2.0.0');
  });
});
