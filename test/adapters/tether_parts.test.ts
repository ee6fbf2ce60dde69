// The small parts of a tether: whether a client has left, the state of pods, and a node's messages.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type PodRow, podRowOf, podsTrouble } from '../../src/adapters/kube/pods.ts';
import { listenOnLoopback } from '../../src/adapters/loopback_listener.ts';
import { podError, responseError } from '../../src/adapters/portforward/transport.ts';
import { isPeerGoneIn, openLoopbackPeers } from '../../src/adapters/process/loopback_peers.ts';
import type { WorkloadReference } from '../../src/protocol/cluster_calls.ts';
import { afterThisTest } from '../kit/actors.ts';
import { eventually } from '../kit/eventually.ts';
import { ownPorts } from '../kit/free_ports.ts';

describe.skipIf(process.platform !== 'linux')('a client', () => {
  it.each(['127.0.0.1', '::1'])(
    'at %s counts as present when half-closed, and as gone when closed',
    async (host) => {
      const peers = await openLoopbackPeers();
      afterThisTest(() => peers.close());
      const [port] = ownPorts(1);
      const ended: Socket[] = [];
      const listener = await listenOnLoopback(port, (socket) => {
        socket
          .on('end', () => ended.push(socket))
          .on('error', () => undefined)
          .resume();
        afterThisTest(() => void socket.destroy());
      });
      if ('refused' in listener) throw new Error(listener.refused);
      afterThisTest(() => void listener.close());
      const half = connect({ port, host, allowHalfOpen: true }, () => half.end());
      afterThisTest(() => void half.destroy());
      await eventually(() => ended.length === 1);
      const whole = connect({ port, host }, () => whole.destroy());
      await eventually(() => ended.length === 2);
      const [halfEnd, wholeEnd] = ended;
      if (!halfEnd || !wholeEnd) throw new Error('not both');
      expect([peers.isPeerGone(halfEnd), peers.isPeerGone(wholeEnd)]).toEqual([false, true]);
      half.destroy();
      await eventually(() => peers.isPeerGone(halfEnd));
    },
  );

  it('is read from complete responses only', () => {
    const answer = (type: number, length: number, write: (bytes: Buffer) => void): Buffer => {
      const bytes = Buffer.alloc(length);
      bytes.writeUInt32LE(length, 0);
      bytes.writeUInt16LE(type, 4);
      write(bytes);
      return bytes;
    };
    const error = (errno: number) => answer(2, 36, (bytes) => bytes.writeInt32LE(-errno, 16));
    const socket = (inode: number) => answer(20, 88, (bytes) => bytes.writeUInt32LE(inode, 84));
    expect([socket(7), socket(0), error(2), error(1)].map(isPeerGoneIn)).toEqual([false, true, true, null]);
    const cut = [
      Buffer.alloc(0),
      error(2).subarray(0, 19),
      socket(0).subarray(0, 20),
      socket(0).subarray(0, 87),
    ];
    expect(cut.map(isPeerGoneIn)).toEqual([null, null, null, null]);
  });

  it('whose socket another process has inherited counts as present', async () => {
    const peers = await openLoopbackPeers();
    afterThisTest(() => peers.close());
    const [port] = ownPorts(1);
    let near: Socket | null = null;
    const server = createServer((socket) => {
      near = socket.on('error', () => undefined).resume();
      afterThisTest(() => void socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    afterThisTest(() => void server.close());
    const inherited = connect(port, '127.0.0.1');
    afterThisTest(() => void inherited.destroy());
    await once(inherited, 'connect');
    const child = spawn('sleep', ['60'], { stdio: [inherited, 'ignore', 'ignore'] });
    afterThisTest(() => void child.kill());
    expect(peers.isPeerGone(await eventually(() => near))).toBe(false);
  });
});

const WEB: WorkloadReference = { kind: 'Deployment', namespace: 'n', name: 'web' };
const pod = (status: object, metadata: object = {}, workload = WEB): PodRow | undefined =>
  podRowOf({ metadata: { name: 'p', namespace: 'n', uid: 'u', ...metadata }, status }, workload);
const waiting = (reason: string, message?: string) => ({
  name: 'c',
  state: { waiting: { reason, message } },
});
const READY = [{ type: 'Ready', status: 'True' }];

describe('the row of a pod', () => {
  it('says whether the pod is ready, which a terminating pod is not', () => {
    expect(pod({ conditions: READY })).toMatchObject({ isReady: true, isEnding: false, trouble: null });
    expect(pod({ conditions: READY }, { deletionTimestamp: 'x' })).toMatchObject({
      isReady: false,
      isEnding: true,
    });
    expect(pod({ conditions: READY, phase: 'Failed' })).toMatchObject({ isReady: false, isEnding: true });
    expect(pod({ conditions: [{ type: 'Ready', status: 'False' }] })).toMatchObject({ isReady: false });
    expect(pod({})).toMatchObject({ isReady: false, trouble: null });
  });

  it('says whether the pod belongs to the workload', () => {
    const isOwn = (kind: string, name: string, workload = WEB, controller = true): boolean | undefined =>
      pod(
        {},
        {
          labels: { 'pod-template-hash': '6b' },
          ownerReferences: [
            { kind: 'ReplicaSet', name: 'web-6b' },
            { kind, name, controller },
          ].slice(controller ? 1 : 0),
        },
        workload,
      )?.isOwn;
    expect(isOwn('ReplicaSet', 'web-6b')).toBe(true);
    for (const name of ['web', 'web-7c', 'web-api-6b', 'we-6b'])
      expect(isOwn('ReplicaSet', name)).toBe(false);
    expect(isOwn('ReplicaSet', 'web-6b', WEB, false)).toBe(false);
    expect(isOwn('StatefulSet', 'web')).toBe(false);
    expect(isOwn('Job', 'web-6b')).toBe(false);
    const set: WorkloadReference = { ...WEB, kind: 'StatefulSet' };
    expect(isOwn('StatefulSet', 'web', set)).toBe(true);
    expect(isOwn('StatefulSet', 'api', set)).toBe(false);
    expect(isOwn('ReplicaSet', 'web-6b', set)).toBe(false);
    expect(pod({})?.isOwn).toBe(false);
  });

  it('names the problem, init containers included', () => {
    expect(pod({ containerStatuses: [waiting('ContainerCreating')] })?.trouble).toBeNull();
    expect(pod({ containerStatuses: [waiting('ErrImagePull', 'no\nroute')] })?.trouble).toBe(
      'pod p: container c: ErrImagePull: no route',
    );
    expect(pod({ initContainerStatuses: [waiting('CrashLoopBackOff')] })?.trouble).toBe(
      'pod p: container c: CrashLoopBackOff',
    );
  });

  it('accepts whatever a server sends, or leaves it out', () => {
    fc.assert(
      fc.property(fc.object({ maxDepth: 5 }), fc.anything(), (status, metadata) => {
        pod(status);
        podRowOf({ metadata, status }, WEB);
        podRowOf(metadata, WEB);
      }),
    );
  });
});

describe('the pods of a workload', () => {
  const row = (change: Partial<PodRow>): PodRow => ({
    uid: 'u',
    namespace: 'n',
    name: 'p',
    isOwn: true,
    isReady: false,
    isRunning: false,
    readyChangedAt: null,
    isEnding: false,
    trouble: null,
    mayPass: false,
    ...change,
  });

  it('are in trouble when all expected pods are', () => {
    const bad = row({ trouble: 'bad' });
    const passing = row({ trouble: 'no room', mayPass: true });
    expect(podsTrouble([])).toBeNull();
    expect(podsTrouble([bad])).toEqual({ reason: 'bad', mayPass: false });
    expect(podsTrouble([bad, row({})])).toBeNull();
    expect(podsTrouble([bad, row({ isEnding: true })])).toEqual({ reason: 'bad', mayPass: false });
    expect(podsTrouble([passing])).toEqual({ reason: 'no room', mayPass: true });
    expect(podsTrouble([passing, bad])).toEqual({ reason: 'bad', mayPass: false });
  });
});

describe('messages of a node or server', () => {
  const texts: [text: string, code: string][] = [
    [
      'error forwarding port 9 to pod x, uid : failed to execute portforward in network namespace "/var/run/netns/c": failed to connect to localhost:9 inside namespace "x", IPv4: dial tcp4 127.0.0.1:9: connect: connection refused',
      'refused',
    ],
    [
      'error forwarding port 80 to pod x, uid : exit status 1: 2020/01/01 socat[1] E connect(5, AF=2 127.0.0.1:80, 16): Connection refused',
      'refused',
    ],
    ['error forwarding port 80 to pod x, uid : failed to find sandbox "x" in store: not found', 'absent'],
    ['error forwarding port 80 to pod x, uid : network namespace for sandbox "x" is closed', 'absent'],
    ['error forwarding port 80 to pod x, uid : container not running (x)', 'absent'],
    [
      'error forwarding port 80: read tcp 127.0.0.1:1->127.0.0.1:80: read: connection reset by peer',
      'broken',
    ],
  ];
  it.each(texts)('%s', (text, code) => {
    expect(podError(text, false).code).toBe(code);
    // Once the pod has answered, its request cannot count as unseen.
    expect(podError(text, true).code).toBe('broken');
  });

  it("is distinguished from a proxy's message", () => {
    const said = (message: string): string => JSON.stringify({ kind: 'Status', message });
    expect(responseError(404, said('pods "p" not found'))).toEqual({
      code: 'absent',
      text: '404: pods "p" not found',
    });
    expect(responseError(404, '<html>not here</html>').code).toBe('unsupported');
    expect(responseError(502, '<html>bad gateway</html>').code).toBe('unsupported');
    expect(responseError(502, said('error dialing backend')).code).toBe('unreachable');
    expect(responseError(403, said('forbidden')).code).toBe('denied');
    expect(responseError(400, said('Upgrade request required')).code).toBe('unsupported');
  });
});
