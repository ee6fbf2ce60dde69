// A process-compose file.
import { constants } from 'node:os';
import { readYamlNodes, type YamlNode } from '../adapters/yaml.ts';
import { at, envOf, rowsOf, textOf } from './foreign.ts';
import { type Imported, type ImportedService, serviceName } from './imported.ts';

const DEPTH = 32;

const RESTARTS = new Map([
  ['on_failure', 'on-failure'],
  ['always', 'always'],
]);

/** What has no counterpart here. */
const LEFT_OUT = [
  'liveness_probe',
  'is_daemon',
  'log_configuration',
  'schedule',
  'replicas',
  'is_tty',
  'entrypoint',
] as const;

/** The URL of an HTTP probe, and its port. */
function probe(node: YamlNode | undefined): { ready: string; port: string } | undefined {
  const get = at(node, 'http_get');
  const port = textOf(at(get, 'port'));
  if (port === undefined) return undefined;
  const host = textOf(at(get, 'host')) ?? 'localhost';
  const path = textOf(at(get, 'path')) ?? '/';
  return {
    ready: `${textOf(at(get, 'scheme')) ?? 'http'}://${host}:${port}${path.startsWith('/') ? path : `/${path}`}`,
    port,
  };
}

function signalName(number: string | undefined): string | undefined {
  return Object.entries(constants.signals).find(([, value]) => String(value) === number)?.[0];
}

function stopOf(node: YamlNode | undefined): ImportedService['stop'] {
  const signal = signalName(textOf(at(node, 'signal')));
  const seconds = textOf(at(node, 'timeout_seconds'));
  const grace = seconds === undefined ? undefined : `${seconds}s`;
  return signal === undefined && grace === undefined
    ? undefined
    : { ...(signal ? { signal } : {}), ...(grace ? { grace } : {}) };
}

/** The names a process waits for; what ends rather than becoming ready cannot be waited for here. */
function needsOf(
  name: string,
  node: YamlNode | undefined,
  names: ReadonlyMap<string, string>,
  notes: string[],
) {
  const needs = rowsOf(node).flatMap(({ key, value }) => {
    const condition = textOf(at(value, 'condition')) ?? '';
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
export function importProcessCompose(text: string): Imported {
  const tree = readYamlNodes(text, DEPTH);
  const rows = rowsOf(at(tree, 'processes'));
  const everywhere = envOf(at(tree, 'environment')) ?? new Map();
  const taken = new Set<string>();
  const notes: string[] = [];
  const isOn = (node: YamlNode): boolean => textOf(at(node, 'disabled')) !== 'true';
  const names = new Map(
    rows.filter(({ value }) => isOn(value)).map(({ key }) => [key, serviceName(key, taken)]),
  );
  const services = rows.flatMap(({ key, value }): ImportedService[] => {
    const name = names.get(key);
    if (name === undefined) notes.push(`${key} is disabled: left out`);
    const cmd = textOf(at(value, 'command'));
    if (name === undefined || cmd === undefined) return [];
    for (const left of LEFT_OUT) if (at(value, left)) notes.push(`${name}: ${left} is left out`);
    if (at(value, 'readiness_probe', 'exec')) notes.push(`${name}: a probe that runs a command is left out`);
    const env = new Map([...everywhere, ...(envOf(at(value, 'environment')) ?? [])]);
    const ready = probe(at(value, 'readiness_probe'));
    const group = textOf(at(value, 'namespace'));
    return [
      {
        name,
        cmd,
        cwd: textOf(at(value, 'working_dir')),
        port: portOf(env, ready),
        ready: ready?.ready,
        env: env.size > 0 ? env : undefined,
        depends_on: needsOf(name, at(value, 'depends_on'), names, notes),
        group: group === 'default' ? undefined : group,
        restart: RESTARTS.get(textOf(at(value, 'availability', 'restart')) ?? ''),
        stop: stopOf(at(value, 'shutdown')),
      },
    ];
  });
  return { services, notes };
}
