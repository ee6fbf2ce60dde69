// The values of `${port.web}` and the like in a service of a stack: docs/reference.md "Placeholders". They
// are filled in at each start. So the record contains the text as written, and a changed port takes effect at
// the next start.
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import { fail } from '../../protocol/errors.ts';
import type { PortProtocol } from '../../protocol/port_protocol.ts';
import type { PortClaim } from '../../protocol/ports.ts';
import type { ServiceSpec } from '../../protocol/service.ts';
import {
  addressVariables,
  PLACEHOLDER,
  shortName,
  slugValueOf,
  stackHostname,
} from '../../protocol/stacks.ts';

/** Where all services of a stack listen. */
export type StackPorts = readonly PortClaim[];

interface StackValues {
  stack: string;
  ports: StackPorts;
}

let last: { json: string; ports: StackPorts } = { json: '[]', ports: [] };

/** The claims in an answer of `ports`. The last ones are kept, as a group starts all its services at once. */
export function claimsIn(json: string): StackPorts {
  if (json !== last.json) last = { json, ports: JSON.parse(json) };
  return last.ports;
}

/** `tcp://localhost:<port>` of what speaks no HTTP, as tables and `berth url` say it too. */
const urlOf = (port: number, protocol: PortProtocol): string => `${protocol}://localhost:${port}`;

function addressOf(kind: string, service: string, { stack, ports }: StackValues): string {
  const found = ports.find(({ name }) => shortName(name, stack) === service);
  const refuse = (why: string) => fail('start_failed', `\${${kind}.${service}} has no value: ${why}`);
  if (!found) throw refuse(`there is no service ${service} in the stack ${stack}`);
  if (kind === 'host') return stackHostname(stack, service);
  const { port, protocol } = found;
  if (port === null) throw refuse(`${service} has no port`);
  return kind === 'url' ? urlOf(port, protocol) : String(port);
}

/** `text` with every placeholder filled in. Fails start_failed for one without a value. */
function fill(text: string, values: StackValues): string {
  const { stack } = values;
  return text.replace(PLACEHOLDER, (whole, dollar: string, body: string) => {
    if (dollar !== '') return whole.slice(dollar.length);
    if (body === 'stack') return stack;
    if (body === 'slug') return slugValueOf(stack);
    const [kind = '', ...service] = body.split('.');
    return addressOf(kind, service.join('.'), values);
  });
}

/** `value` with the placeholders in all its strings filled in. */
function fillAll<V>(value: V, values: StackValues): V {
  if (typeof value === 'string') return fill(value, values) as V;
  if (Array.isArray(value)) return value.map((item) => fillAll(item, values)) as V;
  if (value === null || typeof value !== 'object') return value;
  const rows = Object.entries(value).map(([key, item]) => [key, fillAll(item, values)]);
  return Object.fromEntries(rows) as V;
}

/** The part of a spec that may contain placeholders. */
type FilledSpec = Pick<ServiceSpec, 'cmd' | 'cwd' | 'ready' | 'live' | 'env'>;

/** `spec` as it is started, with the ports of its stack. Fails start_failed. */
export function filledSpec(spec: ServiceSpec, ports: StackPorts): ServiceSpec {
  if (!spec.stack) return spec;
  const { cmd, cwd, live, ready } = spec;
  const values = { stack: spec.stack, ports };
  const env = spec.env.map(([key, value]): [string, string] => [key, fill(value, values)]);
  return { ...spec, ...fillAll<Omit<FilledSpec, 'env'>>({ cmd, cwd, live, ready }, values), env };
}

/** The variables `PORT_<NAME>` and `URL_<NAME>` for all other services of the stack. */
export function neighbourVariables({ name, stack }: ServiceSpec, ports: StackPorts): EnvironmentRows {
  if (!stack) return [];
  return ports.flatMap(({ name: other, port, protocol }): EnvironmentRows => {
    if (port === null || other === name) return [];
    const service = shortName(other, stack);
    if (service === null) return [];
    const names = addressVariables(service);
    return [
      [names.port, String(port)],
      [names.url, urlOf(port, protocol)],
    ];
  });
}
