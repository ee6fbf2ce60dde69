// The shapes of names and identifiers: docs/reference.md "Fields of a service", "Host names".
import { randomBytes } from 'node:crypto';

export const SERVICE_NAME_PATTERN = /^[a-z0-9_][a-z0-9_-]{0,62}$/;
export const GROUP_NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
export const POLICY_NAME_PATTERN = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;
export const ENV_KEY_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** The group of all agents; reserved. */
export const AGENTS_GROUP = 'Agents';

let lastMs = 0;
let counter = 0;

/**
 * The id of one run of a service: 16 hexadecimal digits, 44 bits of milliseconds and 20 random or counted
 * bits. Ids from one process increase; two processes never share one in practice.
 */
export function newRunId(now: number): string {
  if (now > lastMs) {
    lastMs = now;
    counter = randomBytes(3).readUIntBE(0, 3) & 0x7ffff;
  } else {
    counter += 1;
  }
  return (BigInt(lastMs) * 0x100000n + BigInt(counter)).toString(16).padStart(16, '0');
}

/** The host name label for a service or an agent: `_` is not allowed in host names. */
export const hostLabel = (name: string): string => name.replaceAll('_', '-');

/** The host name of the agent `name`: docs/reference.md "Host names". */
export const agentHostname = (name: string, domain: string): string => `${hostLabel(name)}.${domain}`;

const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

/**
 * The host name of the service `name` under the labels `within`: docs/reference.md "Host names". null if the
 * name begins or ends with `_` or `-`, which makes no valid label.
 */
export function serviceHostname(name: string, within: readonly string[]): string | null {
  const label = hostLabel(name);
  return HOST_LABEL.test(label) ? [label, ...within, 'localhost'].join('.') : null;
}

/** Where the gateway on `port` serves `hostname`. */
export const gatewayUrlOf = (hostname: string, port: number): string => `http://${hostname}:${port}/`;

/** Where an agent on `port` is reached. */
export const localhostUrl = (port: number): string => `http://localhost:${port}`;

/** Where a service is reached; null for one without a port. */
export const serviceUrl = (port: number | null): string | null => (port === null ? null : localhostUrl(port));

const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Whether `name` is a valid Kubernetes namespace. */
export const isNamespace = (name: string): boolean => NAMESPACE.test(name);
