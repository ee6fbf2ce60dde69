// Imports a compose file. Each service runs `docker compose up` for its container in the foreground, so that
// berth starts, watches and stops it.
import { parseYamlNodes, type YamlNode } from '../adapters/yaml.ts';
import { type ImportedProject, toServiceName } from './imported_project.ts';
import { listItems, listOrKeys, mapEntries, nodeAt, scalarText } from './lenient_yaml.ts';

const MAX_DEPTH = 32;
/** Longer than the 10 s after which docker kills a container. */
const STOP_GRACE = '15s';

/** The first port of a range such as 3000-3005; a variable is left unchanged. */
const firstOfRange = (ports: string): string =>
  ports.includes('$') ? ports : (ports.split('-')[0] ?? ports);

/**
 * The port of this machine in one entry of `ports`: `8080:80`, `127.0.0.1:8080:80/tcp`, `{published: 8080}`.
 */
function publishedPort(entry: YamlNode): string | undefined {
  const long = scalarText(nodeAt(entry, 'published'));
  if (long !== undefined) return firstOfRange(long);
  const short = scalarText(entry)?.replace(/\/\w+$/, '');
  // Colons inside ${A:-b} are not separators.
  const parts = short?.match(/(?:\$\{[^}]*\}|\[[^\]]*\]|[^:])+/g) ?? [];
  const published = parts.length > 1 ? parts.at(-2) : undefined;
  return published === undefined ? undefined : firstOfRange(published);
}

const asPort = (text: string): number | string => (/^\d+$/.test(text) ? Number(text) : text);

/** The services of the compose file called `file`. */
export function importCompose(text: string, file: string): ImportedProject {
  const tree = parseYamlNodes(text, MAX_DEPTH);
  const rows = mapEntries(nodeAt(tree, 'services'));
  const taken = new Set<string>();
  const names = new Map(rows.map(({ key }) => [key, toServiceName(key, taken)]));
  const notes: string[] = [];
  const services = rows.map(({ key, value }) => {
    const name = names.get(key) ?? key;
    const port = listItems(nodeAt(value, 'ports')).flatMap((entry) => publishedPort(entry) ?? [])[0];
    const needs = listOrKeys(nodeAt(value, 'depends_on')).flatMap((other) => names.get(other) ?? []);
    if (port === undefined) notes.push(`${name}: publishes no port; the one it gets here is not used`);
    if (nodeAt(value, 'profiles'))
      notes.push(`${name}: its profiles are left out; name the services you want to \`berth up\``);
    return {
      name,
      cmd: `docker compose -f ${file} up --no-deps --no-log-prefix ${key}`,
      port: port === undefined ? 'auto' : asPort(port),
      ready: port === undefined ? undefined : 'tcp',
      depends_on: needs.length > 0 ? needs : undefined,
      stop: { grace: STOP_GRACE },
    };
  });
  return { services, notes };
}
