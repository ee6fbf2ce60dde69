// Imports a compose file. Each service runs `docker compose up` for its container in the foreground, so that
// berth starts, watches and stops it. The definition of the container stays in that file.
import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { composeConfig } from '../adapters/compose_config.ts';
import type { YamlNode } from '../adapters/yaml.ts';
import { protocolInContainer } from '../protocol/port_protocol.ts';
import { quoteShellWord } from '../protocol/shell_word.ts';
import { composeFiles, mergeSources, readSources } from './compose_files.ts';
import {
  dependsOn,
  type ImportedProject,
  type ImportedService,
  toServiceName,
  withBraces,
} from './imported_project.ts';
import { listItems, listOrKeys, mapEntries, nodeAt, scalarText } from './lenient_yaml.ts';

/** The time after which docker kills a container by default. */
const DOCKER_STOP_S = 10;
/** Time for docker itself, in addition to the container's. */
const STOP_MARGIN_S = 5;
/** Time for docker to report the state of a container. */
const DOCKER_ANSWER_MS = 10_000;
const MAX_S = 3_600;
/** Docker's defaults. */
const HEALTH = { intervalS: 30, retries: 3, startPeriodS: 0 } as const;

/** The first port of a range such as 3000-3005; a variable is left unchanged. */
const firstOfRange = (ports: string): string =>
  ports.includes('$') ? ports : (ports.split('-')[0] ?? ports);

/**
 * The TCP port of this machine in one entry of `ports`: `8080:80`, `127.0.0.1:8080:80/tcp`,
 * `{published: 8080}`.
 */
function publishedPort(entry: YamlNode): string | undefined {
  const protocol = scalarText(nodeAt(entry, 'protocol')) ?? /\/(\w+)$/.exec(scalarText(entry) ?? '')?.[1];
  if ((protocol ?? 'tcp') !== 'tcp') return undefined;
  const long = scalarText(nodeAt(entry, 'published'));
  if (long !== undefined) return firstOfRange(long);
  const short = scalarText(entry)?.replace(/\/\w+$/, '');
  // Colons inside ${A:-b} are not separators.
  const parts = short?.match(/(?:\$\{[^}]*\}|\[[^\]]*\]|[^:])+/g) ?? [];
  const published = parts.length > 1 ? parts.at(-2) : undefined;
  return published === undefined ? undefined : firstOfRange(published);
}

/** The container port of the same entry; 0 if a variable sets it. */
function containerPort(entry: YamlNode): number {
  const text = scalarText(nodeAt(entry, 'target')) ?? scalarText(entry)?.split(':').at(-1);
  return Number(text?.replace(/\/\w+$/, '')) || 0;
}

const asPort = (text: string): number | string => (/^\d+$/.test(text) ? Number(text) : text);

const UNIT_S = new Map([
  ['us', 1e-6],
  ['ms', 1e-3],
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
]);

/** Seconds of a compose duration, such as `1m30s`; undefined if it is not a duration. */
function seconds(node: YamlNode | undefined): number | undefined {
  const text = scalarText(node);
  const parts = [...(text ?? '').matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h|d)/g)];
  if (parts.length === 0) return undefined;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_S.get(unit ?? '') ?? 0), 0);
}

function isChecked(service: YamlNode | undefined): boolean {
  const health = nodeAt(service, 'healthcheck');
  const test = nodeAt(health, 'test');
  if (!health || scalarText(nodeAt(health, 'disable')) === 'true') return false;
  return scalarText(listItems(test)[0]) !== 'NONE';
}

/** The container's health as docker reports it. The command runs in a shell that quotes with '. */
const healthCheck = (compose: string, word: string): string =>
  `docker inspect -f "{{.State.Health.Status}}" $(${compose} ps -q ${word}) | grep -qx healthy`;

/** The longest time until docker has reported a container as healthy or unhealthy. */
function healthTimeoutS(health: YamlNode | undefined): number {
  const { intervalS, retries, startPeriodS } = HEALTH;
  const interval = seconds(nodeAt(health, 'interval')) ?? intervalS;
  const tries = Number(scalarText(nodeAt(health, 'retries')) ?? retries) + 1;
  return (seconds(nodeAt(health, 'start_period')) ?? startPeriodS) + tries * interval;
}

/** The services that another one waits for to end: they are tasks. */
function awaitedEnds(rows: readonly { value: YamlNode }[]): Set<string> {
  const waits = rows.flatMap(({ value }) => mapEntries(nodeAt(value, 'depends_on')));
  const isEnd = (node: YamlNode): boolean =>
    scalarText(nodeAt(node, 'condition')) === 'service_completed_successfully';
  return new Set(waits.filter(({ value }) => isEnd(value)).map(({ key }) => key));
}

interface ComposeFile {
  /** The command `docker compose` with its files. */
  compose: string;
  names: ReadonlyMap<string, string>;
  tasks: ReadonlySet<string>;
  notes: string[];
  /** Docker compose has resolved the file. */
  isResolved: boolean;
}

function readyOf(key: string, value: YamlNode, port: string | undefined, compose: string) {
  if (isChecked(value)) {
    const timeout = Math.min(MAX_S, Math.max(60, Math.ceil(healthTimeoutS(nodeAt(value, 'healthcheck')))));
    const interval = Math.min(5, Math.max(1, seconds(nodeAt(value, 'healthcheck', 'interval')) ?? 1));
    return {
      ready: {
        exec: healthCheck(compose, quoteShellWord(key)),
        interval: interval * 1_000,
        timeout: DOCKER_ANSWER_MS,
      },
      start_timeout: `${timeout}s`,
    };
  }
  return { ready: port === undefined ? undefined : 'tcp' };
}

function needsOf(
  name: string,
  node: YamlNode | undefined,
  { names, notes }: ComposeFile,
): ImportedService['depends_on'] {
  const needs = listOrKeys(node).flatMap((key) => {
    const other = names.get(key);
    if (other === undefined) {
      notes.push(`${name}: there is no service ${key} to wait for`);
      return [];
    }
    const more = nodeAt(node, key);
    if (scalarText(nodeAt(more, 'restart')) === 'true')
      notes.push(`${name}: depends_on.${key}.restart is left out`);
    if (scalarText(nodeAt(more, 'required')) === 'false')
      notes.push(`${name}: depends_on.${key}.required is left out; it is always needed`);
    // For a list, compose waits only for the start; here, a ready-check is waited for too.
    return { name: other, startedOnly: false };
  });
  return dependsOn(needs);
}

function serviceOf(key: string, value: YamlNode, given: ComposeFile): ImportedService {
  const { compose, names, notes, tasks, isResolved } = given;
  const name = names.get(key) ?? key;
  const published = listItems(nodeAt(value, 'ports')).find((entry) => publishedPort(entry) !== undefined);
  const port = published && publishedPort(published);
  if (nodeAt(value, 'profiles'))
    notes.push(`${name}: profiles is left out; name the services you want to \`berth up\``);
  if (nodeAt(value, 'develop'))
    notes.push(`${name}: develop is left out; \`docker compose watch ${key}\` does it`);
  if (nodeAt(value, 'extends') && !isResolved)
    notes.push(
      `${name}: ports and checks that it gets by extends are left out, which only docker compose reads`,
    );
  const stop = seconds(nodeAt(value, 'stop_grace_period')) ?? DOCKER_STOP_S;
  const shared = {
    depends_on: needsOf(name, nodeAt(value, 'depends_on'), given),
    stop: { grace: `${Math.min(MAX_S, Math.ceil(stop) + STOP_MARGIN_S)}s` },
  };
  const up = `${compose} up --no-deps --no-log-prefix`;
  // Without docker here, nothing has checked the name.
  const word = quoteShellWord(key);
  if (tasks.has(key))
    return { name, cmd: `${up} --exit-code-from ${word} ${word}`, kind: 'task', port: null, ...shared };
  const checks = readyOf(key, value, port, compose);
  const image = scalarText(nodeAt(value, 'image')) ?? '';
  const protocol = published && protocolInContainer(containerPort(published), image);
  return {
    name,
    cmd: `${up} ${word}`,
    port: port === undefined ? null : asPort(withBraces(port, () => true)),
    protocol: protocol === 'tcp' ? protocol : undefined,
    ...checks,
    ...shared,
  };
}

/** The tags that say how docker compose merges a value. */
const MERGE_TAG = /!(reset|override)\b/;

/**
 * The services of the compose file `path` with the content `text`, and of those that docker compose reads
 * with it. Throws what the reading throws.
 */
export function importCompose(text: string, path: string): ImportedProject {
  const { files, notes } = composeFiles(path);
  // A pipe cannot be read twice.
  const read = statSync(path).isFile() ? composeConfig(dirname(path), files) : null;
  const { json: resolved = null, refusal = null } = read ?? {};
  if (refusal !== null) notes.push(`the file: docker compose refuses it, so it is read without: ${refusal}`);
  const sources =
    resolved === null ? readSources(text, path, files) : [{ file: basename(path), text: resolved }];
  const tree = mergeSources(sources);
  const rows = mapEntries(nodeAt(tree, 'services'));
  const taken = new Set<string>();
  const names = new Map(rows.map(({ key }) => [key, toServiceName(key, taken)]));
  const isResolved = resolved !== null;
  if (nodeAt(tree, 'include') && !isResolved)
    notes.push('the file: include is left out, which only docker compose reads');
  if (!isResolved && sources.some((source) => MERGE_TAG.test(source.text)))
    notes.push('the file: !reset and !override are left out, which only docker compose reads');
  const compose = `docker compose ${files.map((file) => `-f ${quoteShellWord(file)}`).join(' ')}`;
  const given = { compose, names, notes, tasks: awaitedEnds(rows), isResolved };
  return { services: rows.map(({ key, value }) => serviceOf(key, value, given)), notes };
}
