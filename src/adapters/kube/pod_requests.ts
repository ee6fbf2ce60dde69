// The CPU and memory requests of a workload's pods, added up as the scheduler does. Pure.
import type { PodRequests } from '../../protocol/savings.ts';
import { arrayOrEmpty, boundedText } from './untrusted_values.ts';
import { type V1Container, type V1PodSpec, type V1ResourceRequirements, wire } from './wire_types.ts';

const QUANTITY = /^(\d{1,18}(?:\.\d{0,9})?|\.\d{1,9})(?:[eE]([+-]?\d{1,2})|(n|u|m|k|[MGTPE]|[KMGTPE]i))?$/;
const FACTORS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** More cores and bytes than any machine has; higher values are reduced to these. */
const MOST: PodRequests = { cpu: 10_000, memory: 2 ** 50 };

/** A Kubernetes quantity, such as 250m or 64Mi; 0 if invalid. */
export function parseQuantity(value: unknown): number {
  const text = typeof value === 'number' ? String(value) : boundedText(value, 40);
  const [, digits, exponent = '0', unit] = QUANTITY.exec(text) ?? [];
  if (digits === undefined) return 0;
  return Number(digits) * 10 ** Number(exponent) * (unit === undefined ? 1 : (FACTORS[unit] ?? 0));
}

type Part = keyof PodRequests;

/** The request for one resource, or else its limit, which counts as the request; null: neither is given. */
function requestOf(resources: unknown, part: Part): number | null {
  const { requests, limits } = wire<V1ResourceRequirements>(resources) ?? {};
  const [asked, most] = [requests, limits].map((map) => wire<Record<Part, string>>(map)?.[part] ?? undefined);
  const value = asked ?? most;
  return value === undefined ? null : parseQuantity(value);
}

const isSidecar = (container: unknown): boolean => wire<V1Container>(container)?.restartPolicy === 'Always';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function partOf(spec: ReturnType<typeof wire<V1PodSpec>>, part: Part): number {
  const of = (container: unknown): number => requestOf(wire<V1Container>(container)?.resources, part) ?? 0;
  const before = arrayOrEmpty(spec?.initContainers);
  // Sidecars run alongside what follows them; other init containers run one after another.
  const peaks = before.map((container, index) =>
    sum([...before.slice(0, index).filter(isSidecar), container].map(of)),
  );
  const running = sum([...arrayOrEmpty(spec?.containers), ...before.filter(isSidecar)].map(of));
  const ofPod = requestOf(spec?.resources, part) ?? Math.max(running, ...peaks);
  const total = ofPod + parseQuantity(wire<Record<Part, string>>(spec?.overhead)?.[part]);
  return Math.min(total, MOST[part]);
}

/** The requests of one pod of a template with this `spec`. */
export function podRequestsOf(spec: unknown): PodRequests {
  const pod = wire<V1PodSpec>(spec);
  return { cpu: partOf(pod, 'cpu'), memory: partOf(pod, 'memory') };
}
