// Which errors of a call are the cluster's, and which are our defects.
import { AssertionError } from 'node:assert';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type KubeCluster,
  openKubeCluster,
  type Resource,
  workloadsResource,
} from '../../../src/adapters/kube/kube_cluster.ts';
import { isCallError, KubeError, kubeFailure, WireError } from '../../../src/adapters/kube/kube_errors.ts';
import { LineTooLong } from '../../../src/adapters/kube/line_splitter.ts';
import { listAndWatch } from '../../../src/adapters/kube/list_watch.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { realTime } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Double, kubeDouble, workload } from '../../kit/kube_double.ts';

const codedError = (code: string): Error => Object.assign(new Error(`the error ${code}`), { code });
const statusError = (status: number): KubeError =>
  new KubeError('read its version', { status, reason: '', message: '', retryAfterMs: null });

describe('an error of a call', () => {
  it.each([
    ['a status', statusError(500), 'cluster_unreachable'],
    ['an account that is not known', statusError(401), 'cluster_denied'],
    ['a missing right', statusError(403), 'cluster_denied'],
    ['an answer that is no list', new WireError('the answer is no list'), 'cluster_unreachable'],
    ['a line that is too long', new LineTooLong('a line has more than 4 bytes'), 'cluster_unreachable'],
    ['an error of a socket', codedError('ECONNRESET'), 'cluster_unreachable'],
    ['an error of TLS', codedError('ERR_SSL_WRONG_VERSION_NUMBER'), 'cluster_unreachable'],
    ['an error of HTTP', codedError('HPE_INVALID_CONSTANT'), 'cluster_unreachable'],
    ['a failure', new Failure('daemon_busy', 'too many calls'), 'daemon_busy'],
  ])('is the cluster’s: %s', (_, error, code) => {
    expect(isCallError(error)).toBe(true);
    expect(kubeFailure(error).code).toBe(code);
  });

  it.each([
    ['a TypeError', new TypeError('x is not a function')],
    ['a TypeError of Node', Object.assign(new TypeError('no string'), { code: 'ERR_INVALID_ARG_TYPE' })],
    ['a RangeError', new RangeError('invalid array length')],
    ['a ReferenceError', new ReferenceError('x is not defined')],
    ['a failed assertion', new AssertionError({ message: 'never' })],
    ['a request that is not well-formed', codedError('UND_ERR_INVALID_ARG')],
    ['an error without a code', new Error('a defect')],
  ])('is a defect: %s', (_, error) => {
    expect(isCallError(error)).toBe(false);
    expect(() => kubeFailure(error)).toThrow(error);
  });
});

describe('a defect in the code that handles a response', () => {
  let double: Double;
  let cluster: KubeCluster;
  const defect = new TypeError('x is not a function');
  const broken: Resource<never> = {
    ...workloadsResource('Deployment'),
    rowOf: () => {
      throw defect;
    },
  };
  beforeEach(async () => {
    double = await kubeDouble();
    double.put('Deployment', workload('web', 'hello', 1));
    cluster = openKubeCluster(double.access, { allow: 'any', apiOnLoopback: true }, realTime);
  });
  afterEach(async () => {
    await cluster.close();
    await double.stop();
  });

  it('is thrown by a listing unchanged, and does not count against the cluster', async () => {
    for (let round = 0; round < 5; round += 1) await expect(cluster.list(broken)).rejects.toBe(defect);
    expect((await cluster.list(workloadsResource('Deployment'))).rows).toHaveLength(1);
  });

  it('is thrown by a watch unchanged', async () => {
    const { version } = await cluster.list(workloadsResource('Deployment'));
    const handler = { onListed: () => undefined, onChanged: () => undefined, onHealth: () => undefined };
    const watched = expect(
      listAndWatch(cluster, broken, { version, isDoubtful: false }, handler, new AbortController().signal, {
        clock: realTime,
      }),
    ).rejects.toBe(defect);
    await eventually(() => double.watches[0]);
    double.put('Deployment', workload('web', 'other', 1));
    await watched;
  });
});
