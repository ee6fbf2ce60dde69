// The target of a relay stream, as JSON in its first frame: docs/reference.md "Relay".
import { type TetherSettings, tetherSettings } from '../../protocol/tethers.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { DNS_SUBDOMAIN } from '../kube/parse_objects.ts';

/** A port of a workload, and how connections to it are carried. */
export interface OpenRequest extends TetherSettings {
  workloadId: string;
  containerPort: number;
  /** Whether a connection may wake the workload. */
  wake: boolean;
}

const MAX_NAME_LENGTH = 253;

const isInteger = (value: unknown, from: number, to: number): value is number =>
  Number.isInteger(value) && (value as number) >= from && (value as number) <= to;

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME_LENGTH;

/** The body of FRAME.open. */
export const openRequestBody = (request: OpenRequest): Buffer =>
  Buffer.from(
    JSON.stringify({
      workload: request.workloadId,
      port: request.containerPort,
      wake: request.wake,
      pod: request.pod,
      allow_not_ready: request.allowNotReady,
      half_closed_timeout: request.halfClosedTimeoutMs,
    }),
  );

function parseObject(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

/** Parses the request in a body; null if invalid. Unknown members are ignored. */
export function readOpenRequest(body: Buffer): OpenRequest | null {
  const given = parseObject(body);
  if (!given) return null;
  const defaults = tetherSettings({});
  const {
    workload,
    port,
    wake = true,
    pod = defaults.pod,
    allow_not_ready: allowNotReady = defaults.allowNotReady,
    half_closed_timeout: halfClosedTimeoutMs = defaults.halfClosedTimeoutMs,
  } = given;
  if (!isName(workload) || !isInteger(port, 1, 65_535) || typeof wake !== 'boolean') return null;
  if (!(pod === null || (isName(pod) && DNS_SUBDOMAIN.test(pod))) || typeof allowNotReady !== 'boolean')
    return null;
  if (!isInteger(halfClosedTimeoutMs, 0, TETHER.maxHalfClosedTimeoutMs)) return null;
  return { workloadId: workload, containerPort: port, wake, pod, allowNotReady, halfClosedTimeoutMs };
}
