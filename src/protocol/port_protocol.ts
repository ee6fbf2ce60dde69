// What a service speaks on its port, so that nothing shows the address of a database as that of a page.
import type { ReadyField } from './checks.ts';

/** `tcp`: anything that is not HTTP. */
export const PORT_PROTOCOLS = ['http', 'tcp'] as const;
export type PortProtocol = (typeof PORT_PROTOCOLS)[number];

/** Servers that speak no HTTP, by the name of their program. */
const TCP_SERVERS: ReadonlySet<string> = new Set([
  ...['redis-server', 'valkey-server', 'keydb-server', 'memcached'],
  ...['postgres', 'postmaster', 'mysqld', 'mysqld_safe', 'mariadbd', 'mariadbd-safe', 'mongod'],
  ...['nats-server', 'beanstalkd', 'mosquitto', 'rabbitmq-server', 'kafka-server-start.sh', 'sshd'],
]);

/** What runs the program that is named after it. */
const RUNNERS: ReadonlySet<string> = new Set([
  ...['exec', 'env', 'nohup', 'nice', 'setpriv', 'sudo', 'gosu', 'su-exec'],
]);
/** Those words before a program that a name of a user follows. */
const BEFORE_USER: ReadonlySet<string> = new Set(['gosu', 'su-exec', '-u']);

/** The name of the program that a simple command runs. */
function programOf(command: string): string {
  const words = command.trim().split(/\s+/);
  const isBefore = (word: string, at: number): boolean =>
    RUNNERS.has(word) || /^-|^\w+=/.test(word) || BEFORE_USER.has(words[at - 1] ?? '');
  const program = words.find((word, at) => !isBefore(word, at)) ?? '';
  return program.slice(program.lastIndexOf('/') + 1);
}

/** Ports at which, by their registration with IANA, such servers listen: those of {@link TCP_SERVERS}. */
const TCP_PORTS: ReadonlySet<number> = new Set([
  ...[22, 1883, 3306, 4222, 5432, 5672, 6379, 9092, 11_211, 11_300, 27_017],
]);

/** Images of such servers that offer nothing by HTTP, by the last part of their name without a tag. */
const TCP_IMAGES: ReadonlySet<string> = new Set([
  ...['redis', 'valkey', 'keydb', 'memcached', 'mongo', 'mysql', 'mariadb', 'percona'],
  ...['postgres', 'postgis', 'pgvector', 'timescaledb', 'eclipse-mosquitto'],
]);

/** What listens on `port` in a container of `image` (empty: it is built), whose program is not known. */
export function protocolInContainer(port: number, image: string): PortProtocol {
  const name = /([^/:@]+)(?:[:@][^/]*)?$/.exec(image)?.[1] ?? '';
  return TCP_PORTS.has(port) || TCP_IMAGES.has(name) ? 'tcp' : 'http';
}

const asksHttp = (ready: ReadyField | null): boolean =>
  typeof ready === 'string' ? ready.startsWith('http') : ready !== null && 'http' in ready;

/** What a service speaks that does not say so: docs/reference.md "Protocol of a service". */
export const toldProtocol = (cmd: string, ready: ReadyField | null): PortProtocol =>
  !asksHttp(ready) && cmd.split(/[;&|\n]/).some((command) => TCP_SERVERS.has(programOf(command)))
    ? 'tcp'
    : 'http';

/**
 * The address of a service as people are shown it: its `url`, which always says http, in the words of what it
 * speaks. null: it has no port.
 */
export const shownAddress = ({ protocol, url }: { protocol: PortProtocol; url: string | null }) =>
  protocol === 'tcp' && url !== null ? url.replace(/^http:/, 'tcp:') : url;
