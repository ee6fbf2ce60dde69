// Changes that a standby forwards to the lease holder, through two real fronts. docs/reference.md "Cloud events".
import { expect, it } from 'vitest';
import { AccessKeys } from '../../../src/front/api/access_keys.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { realTime } from '../../kit/actors.ts';
import { auditOf, cloud } from '../../kit/cloud.ts';
import { send } from '../../kit/http_request.ts';
import { cloudFront, startFront } from '../kit.ts';

const serving = (views: CloudViews) =>
  startFront({
    serves: 'cloud',
    cloud: cloudFront({ token: 'secret', views, ownListener: { bind: '127.0.0.1', port: 0 } }),
  });

/** The lease holder with its cloud part, and a standby. */
async function replicas() {
  const [views, none] = [new CloudViews(), new CloudViews()];
  const [holder, standby] = [await serving(views), await serving(none)];
  const here = await cloud({ world: holder, views, events: holder.events });
  none.markUnavailable('standing_by', 'another Berth has the clusters', 'Ask it.', {
    host: '127.0.0.1',
    port: holder.port,
    relayPort: null,
  });
  return { holder, standby, here };
}

it('may have a chunked body of no bytes', async () => {
  const { holder, standby } = await replicas();
  const headers = { Authorization: 'Bearer secret', 'Transfer-Encoding': 'chunked' };
  for (const { port } of [holder, standby])
    expect(await send(port, 'POST', '/k8s/relay', { headers })).toMatchObject({
      status: 409,
      body: { code: 'relay_off' },
    });
});

it('are in the audit log with the address of the client, which no client can claim', async () => {
  const { holder, standby, here } = await replicas();
  /** Where the change of a client at `from` comes from, as the audit log says. */
  const recorded = async (port: number, from: string, passedOn?: string): Promise<string> => {
    const headers = { Authorization: 'Bearer secret', ...(passedOn && { 'Berth-Passed-On': passedOn }) };
    const body = { selector: { namespaces: ['web'] }, idle_timeout_minutes: 5 };
    const { status } = await send(port, 'PUT', '/k8s/policies/idle', { headers, body, from });
    expect(status).toBe(200);
    return (await auditOf(here)).findLast(({ type }) => type === 'operation.done').from;
  };
  expect(await recorded(holder.port, '127.0.0.2')).toBe('127.0.0.2');
  expect(await recorded(standby.port, '127.0.0.3')).toBe('127.0.0.3');
  const signed = new AccessKeys('secret', realTime).signClient('192.0.2.1');
  const forged = new AccessKeys('other', realTime).signClient('192.0.2.1');
  const claims = ['1', '192.0.2.1', '192.0.2.1 ', forged, signed.replace('192.0.2.1', '192.0.2.2')];
  for (const [index, claim] of claims.entries()) {
    const address = `127.0.0.${index + 4}`;
    expect(await recorded(holder.port, address, claim), claim).toBe(address);
  }
});
