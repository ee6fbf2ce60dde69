// What pods request, as the scheduler adds it up.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseQuantity, podRequestsOf } from '../../../src/adapters/kube/pod_requests.ts';

it.each([
  ['250m', 0.25],
  ['2', 2],
  [2, 2],
  ['0.5', 0.5],
  ['.5', 0.5],
  ['1e3', 1_000],
  ['64Mi', 2 ** 26],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['128974848', 128_974_848],
  ['129M', 129e6],
  ['100k', 1e5],
  ['1Ei', 2 ** 60],
  ['-1', 0],
  ['1 Gi', 0],
  ['1K', 0],
  ['NaN', 0],
  ['1e999', 0],
  ['', 0],
  [null, 0],
  [{}, 0],
  ['9'.repeat(1_000), 0],
])('the quantity %j is %d', (text, value) => {
  expect(parseQuantity(text)).toBeCloseTo(value, 9);
});

const container = (cpu?: string, memory?: string, more: object = {}) => ({
  resources: { requests: { ...(cpu && { cpu }), ...(memory && { memory }) } },
  ...more,
});

it.each<[string, object, { cpu: number; memory: number }]>([
  ['nothing', { containers: [{}] }, { cpu: 0, memory: 0 }],
  [
    'all containers together',
    { containers: [container('250m', '1Ki'), container('1', '1Ki')] },
    { cpu: 1.25, memory: 2_048 },
  ],
  [
    'a limit where there is no request',
    { containers: [{ resources: { limits: { cpu: '2', memory: '1Ki' }, requests: { cpu: '1' } } }] },
    { cpu: 1, memory: 1_024 },
  ],
  [
    'the largest that runs before, if it is more',
    { containers: [container('1')], initContainers: [container('3'), container('2')] },
    { cpu: 3, memory: 0 },
  ],
  [
    'sidecars, beside those after them',
    {
      containers: [container('1')],
      initContainers: [
        container('2'),
        container('500m', undefined, { restartPolicy: 'Always' }),
        container('1'),
      ],
    },
    { cpu: 2, memory: 0 },
  ],
  [
    'of the pod itself, with its overhead',
    { containers: [container('1')], resources: { requests: { cpu: '4' } }, overhead: { cpu: '250m' } },
    { cpu: 4.25, memory: 0 },
  ],
  ['no more than there can be', { containers: [container('1E', '900Ei')] }, { cpu: 10_000, memory: 2 ** 50 }],
])('a pod requests %s', (_what, spec, requests) => {
  expect(podRequestsOf(spec)).toEqual(requests);
});

it('any object requests something finite', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (containers, resources) => {
      const { cpu, memory } = podRequestsOf({ containers, initContainers: containers, resources });
      const other = podRequestsOf({
        containers: [{ resources: { requests: resources, limits: containers } }],
      });
      for (const value of [cpu, memory, other.cpu, other.memory]) expect(value).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 200 },
  );
});
