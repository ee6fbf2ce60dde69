// The address of a Postgres database, as `cloud.database_url` has it: docs/reference.md "Shared database".
import { isLoopback } from './loopback.ts';

export interface DatabaseAddress {
  /** A name, an IP address, or the absolute path of the folder of a Unix socket. */
  host: string;
  port: number;
  database: string;
  user: string;
  /** undefined: none is sent, unless ~/.pgpass has one. */
  password: string | undefined;
  /** Whether the connection is encrypted, and the server's certificate and name are checked. */
  isEncrypted: boolean;
  /** The file of certificate authorities to trust instead of the system's. */
  caFile: string | undefined;
  /** The address for people, without the password. */
  label: string;
}

const PARAMETERS: readonly string[] = ['host', 'sslmode', 'sslrootcert'];

/** What an invalid address should be instead; null: it is valid. */
export function databaseUrlFault(value: string): string | null {
  if (!URL.canParse(value) || !/^postgres(ql)?:$/.test(new URL(value).protocol))
    return 'empty or a URL such as "postgresql://berth:password@db.example.com/berth"';
  const { username, pathname, searchParams, hostname } = new URL(value);
  const unknown = [...searchParams.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) return `without the parameter ${unknown}; known are ${PARAMETERS.join(', ')}`;
  if (username === '' || pathname.length < 2) return 'a URL with a user and a database';
  if (hostname === '' && !searchParams.get('host')) return 'a URL with a host, or host=/folder of a socket';
  const mode = searchParams.get('sslmode');
  if (mode !== null && mode !== 'verify-full' && mode !== 'disable')
    return 'with sslmode=verify-full or sslmode=disable: the other modes do not check who answers';
  return null;
}

/** Parses a valid URL. TLS is only omitted on this machine, or with `sslmode=disable`. */
export function readDatabaseUrl(value: string): DatabaseAddress {
  const url = new URL(value);
  const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname).replace(/^\[|\]$/g, '');
  const port = Number(url.port || 5432);
  const database = decodeURIComponent(url.pathname.slice(1));
  const user = decodeURIComponent(url.username);
  const isHere = host.startsWith('/') || host === 'localhost' || isLoopback(host);
  const mode = url.searchParams.get('sslmode');
  return {
    ...{ host, port, database, user },
    password: url.password === '' ? undefined : decodeURIComponent(url.password),
    isEncrypted: mode === 'verify-full' || (mode === null && !isHere),
    caFile: url.searchParams.get('sslrootcert') ?? undefined,
    label: `${host}:${port}/${database}`,
  };
}
