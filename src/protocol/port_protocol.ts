// The protocol on a service's port, so that the address of a database is not shown as that of a web page.
import type { ReadyField } from './checks.ts';

/** `tcp`: anything that is not HTTP. */
export const PORT_PROTOCOLS = ['http', 'tcp'] as const;
export type PortProtocol = (typeof PORT_PROTOCOLS)[number];

/** Servers that do not speak HTTP, by program name. */
const TCP_SERVERS: ReadonlySet<string> = new Set([
  ...['redis-server', 'valkey-server', 'keydb-server', 'memcached'],
  ...['postgres', 'postmaster', 'mysqld', 'mysqld_safe', 'mariadbd', 'mariadbd-safe', 'mongod'],
  ...['nats-server', 'beanstalkd', 'mosquitto', 'rabbitmq-server', 'kafka-server-start.sh', 'sshd'],
]);

/** Wrappers, which run the program named after them. */
const RUNNERS: ReadonlySet<string> = new Set([
  ...['exec', 'env', 'nohup', 'nice', 'setpriv', 'sudo', 'gosu', 'su-exec', 'time', 'timeout', 'command'],
  ...['sh', 'bash', 'dash', 'zsh', 'if', 'then', 'else', 'elif', 'while', 'until', 'do', '!'],
  ...['npx', 'bunx', 'bundle', 'cross-env', 'dotenv'],
]);
/** Wrapper words that are followed by a user name rather than the program. */
const BEFORE_USER: ReadonlySet<string> = new Set(['gosu', 'su-exec', '-u']);

/** The name of the program that a simple command runs; '' for none. */
export function programOf(command: string): string {
  const words = command.trim().split(/\s+/);
  const isBefore = (word: string, at: number): boolean =>
    RUNNERS.has(word) || /^-|^\w+=|^\d+[smh]?$/.test(word) || BEFORE_USER.has(words[at - 1] ?? '');
  const program = words.find((word, at) => !isBefore(word, at)) ?? '';
  return program.slice(program.lastIndexOf('/') + 1);
}

/** Ports registered with IANA for the servers in {@link TCP_SERVERS}. */
const TCP_PORTS: ReadonlySet<number> = new Set([
  ...[22, 1883, 3306, 4222, 5432, 5672, 6379, 9092, 11_211, 11_300, 27_017],
]);

/** Images of servers that do not speak HTTP, by the last part of their name without the tag. */
const TCP_IMAGES: ReadonlySet<string> = new Set([
  ...['redis', 'valkey', 'keydb', 'memcached', 'mongo', 'mysql', 'mariadb', 'percona'],
  ...['postgres', 'postgis', 'pgvector', 'timescaledb', 'eclipse-mosquitto'],
]);

/** The protocol on `port` in a container of `image` (empty: built locally), whose program is unknown. */
export function protocolInContainer(port: number, image: string): PortProtocol {
  const name = /([^/:@]+)(?:[:@][^/]*)?$/.exec(image)?.[1] ?? '';
  return TCP_PORTS.has(port) || TCP_IMAGES.has(name) ? 'tcp' : 'http';
}

const asksHttp = (ready: ReadyField | null): boolean =>
  typeof ready === 'string' ? ready.startsWith('http') : ready !== null && 'http' in ready;

/** The protocol of a service that does not declare one: docs/reference.md "Protocol of a service". */
export const toldProtocol = (cmd: string, ready: ReadyField | null): PortProtocol =>
  !asksHttp(ready) && cmd.split(/[;&|\n]/).some((command) => TCP_SERVERS.has(programOf(command)))
    ? 'tcp'
    : 'http';

/**
 * The address of a service as shown to people: its `url`, which always says http, with the scheme that it
 * really speaks. null: it has no port.
 */
export const shownAddress = ({ protocol, url }: { protocol: PortProtocol; url: string | null }) =>
  protocol === 'tcp' && url !== null ? url.replace(/^http:/, 'tcp:') : url;
