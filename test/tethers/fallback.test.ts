// Tethers where SPDY is not to be had: a real account that may get forwards, which is the right for WebSockets, and not
// create them, which is that for SPDY.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { MIB } from '../../src/limits.ts';
import { api, describeReal, sandbox } from '../cloud/real.ts';
import { answer, client, field, lastError, podsOf, post, server } from './field.ts';

describeReal('a tether over WebSockets', () => {
  const box = sandbox();
  const pods = podsOf(box, 'web');
  let token = '';

  beforeAll(async () => {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${box.namespace}`;
    const accounts = `/api/v1/namespaces/${box.namespace}/serviceaccounts`;
    await api('POST', accounts, { metadata: { name: 'getter' } });
    await api('POST', `${rbac}/roles`, {
      metadata: { name: 'getter' },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
        { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get'] },
      ],
    });
    await api('POST', `${rbac}/rolebindings`, {
      metadata: { name: 'getter' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'getter' },
      subjects: [{ kind: 'ServiceAccount', name: 'getter', namespace: box.namespace }],
    });
    token = (await api('POST', `${accounts}/getter/token`, { spec: {} })).body.status.token;
    await box.create('Deployment', server('web', 1));
    await pods.ready(1);
  }, 60_000);

  it('carries answers and sessions, many at once', async () => {
    const { port } = await field({ sandbox: box, name: 'web', token });
    const [name] = await pods.names();
    expect(await answer(port, 'name\n')).toBe(`${name}\n`);
    const clients = Array.from({ length: 30 }, () => client(port, 'stay\n'));
    await Promise.all(clients.map(({ until }) => until((text) => text === `${name}\n`)));
    for (const { socket } of clients) socket.write('more\n');
    await Promise.all(clients.map(({ until }) => until((text) => text === `${name}\n${name}\n`)));
  }, 60_000);

  it('carries 32 MiB each way unchanged', async () => {
    const { port } = await field({ sandbox: box, name: 'web', token });
    const down = client(port, 'down 32\n');
    expect(await down.ended).toBe('end');
    expect(await answer(port, 'sum 32\n')).toBe(`${down.md5()}  -\n`);
    const { socket, until } = client(port, `up ${32 * MIB}\n`);
    const sent = randomBytes(32 * MIB);
    socket.write(sent);
    const sum = createHash('md5').update(sent).digest('hex');
    expect(await until((text) => text.endsWith('\n'))).toBe(`${sum}  -\n`);
  }, 60_000);

  it('reads from the pod no faster than the client takes it', async () => {
    const tether = await field({ sandbox: box, name: 'web', token });
    const slow = client(tether.port);
    slow.socket.pause();
    slow.socket.write('down 100000\n');
    const told = async (): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return tether.tethers.of('numbers').at(-1)?.numbers.bytesOut ?? 0;
    };
    let held = await told();
    for (let next = await told(); next !== held; next = await told()) held = next;
    expect(held).toBeLessThan(512 * MIB);
    expect(await answer(tether.port, 'name\n')).toContain('web-');
  }, 60_000);

  it('gives a client that has half-closed its whole reply', async () => {
    const { port } = await field({ sandbox: box, name: 'web', token });
    const { socket, ended, bytes } = client(port, 'late 2 1\n');
    socket.end();
    expect(await ended).toBe('end');
    expect(bytes()).toBe(MIB);
  }, 60_000);

  it('carries what a client has sent that goes at once', async () => {
    const { port } = await field({ sandbox: box, name: 'web', token });
    const bytes = randomBytes(3_000_000);
    await post(port, bytes);
    const sum = createHash('md5').update(bytes).digest('hex');
    expect(await answer(port, 'posted\n')).toBe(`${sum}  -\n`);
  }, 60_000);

  it('passes on what the node says', async () => {
    const tether = await field({ sandbox: box, name: 'web', token, containerPort: 7999 });
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    expect(await lastError(tether)).toContain('connection refused');
  }, 60_000);
});
