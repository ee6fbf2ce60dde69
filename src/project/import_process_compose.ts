// Imports a process-compose file.
import { constants } from 'node:os';
import { parseYamlNodes, type YamlNode } from '../adapters/yaml.ts';
import { type ImportedProject, type ImportedService, toServiceName } from './imported_project.ts';
import { envEntries, mapEntries, nodeAt, scalarText } from './lenient_yaml.ts';

const MAX_DEPTH = 32;

const RESTART_POLICY_NAMES = new Map([
  ['on_failure', 'on-failure'],
  ['always', 'always'],
]);

/** Keys without a counterpart in berth.yaml. */
const UNSUPPORTED_KEYS = [
  'liveness_probe',
  'is_daemon',
  'log_configuration',
  'schedule',
  'replicas',
  'is_tty',
  'entrypoint',
] as const;

/** The URL of an HTTP probe, and its port. */
function httpProbe(node: YamlNode | undefined): { ready: string; port: string } | undefined {
  const get = nodeAt(node, 'http_get');
  const port = scalarText(nodeAt(get, 'port'));
  if (port === undefined) return undefined;
  const host = scalarText(nodeAt(get, 'host')) ?? 'localhost';
  const path = scalarText(nodeAt(get, 'path')) ?? '/';
  const scheme = scalarText(nodeAt(get, 'scheme')) ?? 'http';
  return {
    ready: `${scheme}://${host}:${port}${path.startsWith('/') ? path : `/${path}`}`,
    port,
  };
}

function signalName(number: string | undefined): string | undefined {
  return Object.entries(constants.signals).find(([, value]) => String(value) === number)?.[0];
}

function stopSettings(node: YamlNode | undefined): ImportedService['stop'] {
  const signal = signalName(scalarText(nodeAt(node, 'signal')));
  const seconds = scalarText(nodeAt(node, 'timeout_seconds'));
  const grace = seconds === undefined ? undefined : `${seconds}s`;
  return signal === undefined && grace === undefined
    ? undefined
    : { ...(signal ? { signal } : {}), ...(grace ? { grace } : {}) };
}

/** The names a process waits for; what ends rather than becoming ready cannot be waited for here. */
function dependenciesOf(
  name: string,
  node: YamlNode | undefined,
  names: ReadonlyMap<string, string>,
  notes: string[],
) {
  const needs = mapEntries(node).flatMap(({ key, value }) => {
    const condition = scalarText(nodeAt(value, 'condition')) ?? '';
    if (!condition.startsWith('process_completed')) return names.get(key) ?? [];
    notes.push(`${name}: waiting for ${key} to complete is left out`);
    return [];
  });
  return needs.length > 0 ? needs : undefined;
}

function portOf(env: Map<string, string> | undefined, ready: { port: string } | undefined): number | string {
  const port = ready?.port ?? env?.get('PORT');
  if (port === undefined) return 'auto';
  return /^\d+$/.test(port) ? Number(port) : port;
}

/** The services of a process-compose file. */
export function importProcessCompose(text: string): ImportedProject {
  const tree = parseYamlNodes(text, MAX_DEPTH);
  const rows = mapEntries(nodeAt(tree, 'processes'));
  const everywhere = envEntries(nodeAt(tree, 'environment')) ?? new Map();
  const taken = new Set<string>();
  const notes: string[] = [];
  const isOn = (node: YamlNode): boolean => scalarText(nodeAt(node, 'disabled')) !== 'true';
  const names = new Map(
    rows.filter(({ value }) => isOn(value)).map(({ key }) => [key, toServiceName(key, taken)]),
  );
  const services = rows.flatMap(({ key, value }): ImportedService[] => {
    const name = names.get(key);
    if (name === undefined) notes.push(`${key} is disabled: left out`);
    const cmd = scalarText(nodeAt(value, 'command'));
    if (name === undefined || cmd === undefined) return [];
    for (const left of UNSUPPORTED_KEYS) if (nodeAt(value, left)) notes.push(`${name}: ${left} is left out`);
    if (nodeAt(value, 'readiness_probe', 'exec'))
      notes.push(`${name}: a probe that runs a command is left out`);
    const env = new Map([...everywhere, ...(envEntries(nodeAt(value, 'environment')) ?? [])]);
    const ready = httpProbe(nodeAt(value, 'readiness_probe'));
    const group = scalarText(nodeAt(value, 'namespace'));
    return [
      {
        name,
        cmd,
        cwd: scalarText(nodeAt(value, 'working_dir')),
        port: portOf(env, ready),
        ready: ready?.ready,
        env: env.size > 0 ? env : undefined,
        depends_on: dependenciesOf(name, nodeAt(value, 'depends_on'), names, notes),
        group: group === 'default' ? undefined : group,
        restart: RESTART_POLICY_NAMES.get(scalarText(nodeAt(value, 'availability', 'restart')) ?? ''),
        stop: stopSettings(nodeAt(value, 'shutdown')),
      },
    ];
  });
  return { services, notes };
}
