// Every setting in one table: docs/reference.md "Settings". A named file that is absent, an unknown key or an
// invalid value prevents the start.
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { databaseUrlFault } from './database_url.ts';
import { isLoopback } from './loopback.ts';
import { type NoticeRule, readNoticeRules } from './notify.ts';
import { readTextFile } from './state_files.ts';
import { parseToml } from './toml.ts';

export type PortRange = [from: number, to: number];

export interface Settings {
  bind: string;
  port: number;
  allowed_extensions: string[];
  allowed_origins: string[];
  notify: NoticeRule[];
  auth: { token: string };
  services: { ports: PortRange };
  agents: { domain: string; ports: PortRange };
  gateway: { port: number };
  logs: { max_bytes: number; keep: number };
  shutdown: { services: 'stop' | 'keep' };
  cloud: {
    token: string;
    bind: string;
    port: number;
    relay_port: number;
    tls_cert: string;
    tls_key: string;
    behind_tls: boolean;
    tether_ports: PortRange;
    sweep_interval_ms: number;
    allow_addresses: string | string[];
    allow_in_cluster: boolean;
    key_file: string;
    database_url: string;
    advertise: string;
    remote: string;
    remote_token: string;
    oidc_issuer: string;
    oidc_audience: string;
    oidc_subject_claim: string;
    oidc_groups_claim: string;
    oidc_client_id: string;
    oidc_scope: string;
    quota_tethers: number;
    quota_connections: number;
    quota_wakes_per_hour: number;
  };
}

/** An invalid setting. The message is one line for the user, and the program exits with code 2. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

interface ValueRule {
  what: string;
  fits: (value: unknown) => boolean;
}

const text: ValueRule = {
  what: 'a string without control characters',
  fits: (v) => typeof v === 'string' && !/[\0-\x1f\x7f]/.test(v),
};
const flag: ValueRule = { what: 'true or false', fits: (v) => typeof v === 'boolean' };
const isInteger = (v: unknown, from: number, to: number): boolean =>
  Number.isInteger(v) && (v as number) >= from && (v as number) <= to;
const integer = (from: number, to: number): ValueRule => ({
  what: `an integer from ${from} to ${to}`,
  fits: (v) => isInteger(v, from, to),
});
const range: ValueRule = {
  what: 'two ports [from, to] with from <= to',
  fits: (v) => Array.isArray(v) && v.length === 2 && v.every((p) => isInteger(p, 1, 65535)) && v[0] <= v[1],
};
const address: ValueRule = { what: 'an IP address', fits: (v) => typeof v === 'string' && isIP(v) !== 0 };
const addressOrEmpty: ValueRule = {
  what: 'an IP address or empty',
  fits: (v) => v === '' || address.fits(v),
};
const pathOrEmpty: ValueRule = {
  what: 'an absolute path or empty',
  fits: (v) => v === '' || (text.fits(v) && isAbsolute(v as string)),
};
const domain: ValueRule = {
  what: 'a domain name such as agents.localhost',
  fits: (v) =>
    typeof v === 'string' &&
    v.length <= 180 &&
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/.test(v),
};
const CIDR = /^[0-9a-fA-F.:]+\/\d{1,3}$/;
const fitsCidr = (v: unknown): boolean => {
  if (typeof v !== 'string' || !CIDR.test(v)) return false;
  const [ip = '', bits] = v.split('/');
  return isIP(ip) !== 0 && Number(bits) <= (isIP(ip) === 4 ? 32 : 128);
};

/**
 * Whether `v` is an origin in exactly the form browsers send, because neither they nor the guard normalise
 * it.
 */
const isOrigin = (v: unknown): boolean =>
  typeof v === 'string' && /^https?:\/\/[^*]+$/.test(v) && URL.canParse(v) && new URL(v).origin === v;

/**
 * Whether `v` is the address of a Berth: an origin. http: is only allowed for this machine, because a token
 * must not be sent in the clear.
 */
export function isBerthAddress(v: unknown): boolean {
  if (!isOrigin(v)) return false;
  const { protocol, hostname } = new URL(v as string);
  return protocol === 'https:' || hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/** Whether `v` is the URL of an issuer: like the address of a Berth, but it may have a path. */
function isIssuerUrl(v: unknown): boolean {
  if (typeof v !== 'string' || !URL.canParse(v) || v.endsWith('/')) return false;
  const { origin, search, hash, username } = new URL(v);
  return isBerthAddress(origin) && search + hash + username === '';
}

const asciiOrEmpty: ValueRule = {
  what: 'printable ASCII without spaces',
  fits: (v) => typeof v === 'string' && /^[!-~]*$/.test(v),
};

const claimName: ValueRule = {
  what: 'the name of a claim',
  fits: (v) => typeof v === 'string' && /^[!-~]{1,200}$/.test(v),
};

type SettingRow = [key: string, fallback: unknown, rule: ValueRule];

const SETTING_ROWS: readonly SettingRow[] = [
  ['bind', '127.0.0.1', address],
  ['port', 11611, integer(0, 65535)],
  [
    'allowed_extensions',
    [],
    {
      what: 'a list of extension ids',
      fits: (v) =>
        Array.isArray(v) &&
        v.every((id) => typeof id === 'string' && /^[A-Za-z0-9-][A-Za-z0-9.-]*$/.test(id)),
    },
  ],
  [
    'allowed_origins',
    [],
    {
      what: 'a list of origins such as "http://localhost:5173"',
      fits: (v) => Array.isArray(v) && v.every(isOrigin),
    },
  ],
  // Read by its own rules, whose messages contain no value.
  ['notify', [], { what: 'tables', fits: () => true }],
  [
    'auth.token',
    '',
    { what: 'printable ASCII without spaces', fits: (v) => typeof v === 'string' && /^[!-~]*$/.test(v) },
  ],
  ['services.ports', [3100, 3999], range],
  ['agents.domain', 'agents.localhost', domain],
  ['agents.ports', [8100, 8200], range],
  ['gateway.port', 11612, integer(-1, 65535)],
  ['logs.max_bytes', 10_485_760, integer(65_536, 1_099_511_627_776)],
  ['logs.keep', 5, integer(0, 1000)],
  ['shutdown.services', 'stop', { what: '"stop" or "keep"', fits: (v) => v === 'stop' || v === 'keep' }],
  ['cloud.token', '', asciiOrEmpty],
  ['cloud.bind', '', addressOrEmpty],
  ['cloud.port', 11613, integer(0, 65535)],
  ['cloud.relay_port', 11614, integer(-1, 65535)],
  ['cloud.tls_cert', '', pathOrEmpty],
  ['cloud.tls_key', '', pathOrEmpty],
  ['cloud.behind_tls', false, flag],
  ['cloud.tether_ports', [20000, 20999], range],
  ['cloud.sweep_interval_ms', 600_000, integer(1_000, 86_400_000)],
  [
    'cloud.allow_addresses',
    'auto',
    {
      what: '"auto", "any", "public" or a list of CIDRs',
      fits: (v) => v === 'auto' || v === 'any' || v === 'public' || (Array.isArray(v) && v.every(fitsCidr)),
    },
  ],
  ['cloud.allow_in_cluster', false, flag],
  ['cloud.key_file', '', pathOrEmpty],
  ['cloud.advertise', '', addressOrEmpty],
  // Read by its own rule, whose messages contain no value.
  ['cloud.database_url', '', text],
  [
    'cloud.remote',
    '',
    {
      what: 'empty or the address of a Berth such as "https://berth.example.com", http on this machine only',
      fits: (v) => v === '' || isBerthAddress(v),
    },
  ],
  ['cloud.remote_token', '', asciiOrEmpty],
  [
    'cloud.oidc_issuer',
    '',
    {
      what: 'empty or the URL of an issuer such as "https://login.example.com/realms/dev", http on this machine only',
      fits: (v) => v === '' || isIssuerUrl(v),
    },
  ],
  ['cloud.oidc_audience', '', asciiOrEmpty],
  ['cloud.oidc_subject_claim', 'sub', claimName],
  ['cloud.oidc_groups_claim', 'groups', claimName],
  ['cloud.oidc_client_id', '', asciiOrEmpty],
  [
    'cloud.oidc_scope',
    'openid profile email offline_access',
    {
      what: 'names of scopes with blanks in between, one of them openid',
      fits: (v) => typeof v === 'string' && /^[!-~]+( [!-~]+)*$/.test(v) && v.split(' ').includes('openid'),
    },
  ],
  ['cloud.quota_tethers', 0, integer(0, 1_000_000)],
  ['cloud.quota_connections', 0, integer(0, 1_000_000)],
  ['cloud.quota_wakes_per_hour', 0, integer(0, 1_000_000)],
];

/** Environment variables that override the file; an empty one counts as unset. */
const ENV_OVERRIDES: readonly [variable: string, key: string, parse: (value: string) => unknown][] = [
  ['BERTH_AUTH_TOKEN', 'auth.token', (value) => value],
  ['BERTH_CLOUD_TOKEN', 'cloud.token', (value) => value],
  ['BERTH_CLOUD_BIND', 'cloud.bind', (value) => value],
  ['BERTH_CLOUD_KEY_FILE', 'cloud.key_file', (value) => value],
  ['BERTH_REMOTE_TOKEN', 'cloud.remote_token', (value) => value],
  ['BERTH_CLOUD_ADVERTISE', 'cloud.advertise', (value) => value],
  ['BERTH_DATABASE_URL', 'cloud.database_url', (value) => value],
  ['BERTH_PORT', 'port', (value) => (/^\d{1,5}$/.test(value) ? Number(value) : value)],
  ['BERTH_BIND', 'bind', (value) => value],
];

type Env = Readonly<Record<string, string | undefined>>;

/** A directory of the XDG base directory specification, which has relative values ignored. */
export function xdgDir(env: Env, variable: string, fallback: string): string {
  const value = env[variable];
  return join(value && isAbsolute(value) ? value : join(homedir(), fallback), 'berth');
}

/** The configuration file to read, and whether it was named, in which case it must exist. */
export function configFile(named: string | undefined, env: Env): { path: string; named: boolean } {
  const path = named ?? (env['BERTH_CONFIG'] || undefined);
  return path === undefined
    ? { path: join(xdgDir(env, 'XDG_CONFIG_HOME', '.config'), 'config.toml'), named: false }
    : { path, named: true };
}

const formatValue = (value: unknown): string =>
  value === undefined ? 'nothing' : (JSON.stringify(value) ?? String(value));

/** Keys of tokens, even misspelt. Their values never appear in a message. */
const SECRET_KEY = /^auth\b|tok|secret|pass|database/i;

/** `key = value` for a message, without the value of a secret. */
const formatSetting = (key: string, value: unknown): string =>
  `${key} = ${SECRET_KEY.test(key) ? '(not shown)' : formatValue(value)}`;

/**
 * Flattens `{auth: {token}}` to `auth.token` rows. A table in place of a value stays a value, which fails its
 * rule.
 */
function flatten(table: object, prefix: string, known: ReadonlySet<string>): [key: string, value: unknown][] {
  return Object.entries(table).flatMap(([name, value]): [string, unknown][] => {
    const key = prefix + name;
    const isTable =
      typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
    return isTable && !known.has(key) ? flatten(value, `${key}.`, known) : [[key, value]];
  });
}

function buildSettings(values: ReadonlyMap<string, unknown>): Settings {
  const settings: Record<string, unknown> = {};
  for (const [key] of SETTING_ROWS) {
    const [first = '', second] = key.split('.');
    if (second === undefined) settings[first] = values.get(key);
    else settings[first] = { ...(settings[first] as object | undefined), [second]: values.get(key) };
  }
  return settings as unknown as Settings;
}

function noticeRules(value: unknown, where: string): NoticeRule[] {
  try {
    return readNoticeRules(value);
  } catch (error) {
    throw new SettingsError(`${where}: ${(error as Error).message}`);
  }
}

function checkCombinations(settings: Settings, where: string): void {
  const { allowed_origins: origins, auth, cloud } = settings;
  if (origins.length > 0 && auth.token === '') {
    throw new SettingsError(
      `${where}: allowed_origins = ${formatValue(origins)} needs auth.token: ` +
        'a page that may call must have something to prove itself with',
    );
  }
  if (cloud.oidc_issuer !== '' && cloud.oidc_audience === '') {
    throw new SettingsError(
      `${where}: cloud.oidc_issuer needs cloud.oidc_audience: tokens for anything else must be refused`,
    );
  }
  const fault = cloud.database_url === '' ? null : databaseUrlFault(cloud.database_url);
  if (fault !== null) throw new SettingsError(`${where}: cloud.database_url must be ${fault}`);
  if (cloud.database_url !== '' && cloud.remote !== '') {
    throw new SettingsError(`${where}: cloud.database_url and cloud.remote must not be set together`);
  }
  if ((cloud.tls_cert === '') !== (cloud.tls_key === '')) {
    throw new SettingsError(`${where}: cloud.tls_cert and cloud.tls_key must be set together`);
  }
  if (cloud.bind !== '' && !isLoopback(cloud.bind) && cloud.tls_cert === '' && !cloud.behind_tls) {
    throw new SettingsError(
      `${where}: cloud.bind = ${formatValue(cloud.bind)} is not a loopback address: ` +
        'set cloud.tls_cert and cloud.tls_key, or cloud.behind_tls = true',
    );
  }
}

/** The folder of the user's rules for screens, beside the configuration file at `configPath`. */
export const rulesFolder = (configPath: string): string => join(dirname(configPath), 'agents');

type ReadText = (path: string) => string | Promise<string>;

async function readConfigFile(path: string, readText: ReadText): Promise<[string, unknown][]> {
  let source: string;
  try {
    source = await readText(path);
  } catch (error) {
    throw new SettingsError(`${path}: cannot be read: ${(error as Error).message}`);
  }
  try {
    return flatten(await parseToml(source), '', new Set(SETTING_ROWS.map(([key]) => key)));
  } catch (error) {
    throw new SettingsError(`${path}: ${(error as Error).message}`);
  }
}

/**
 * Reads the settings: defaults, then the file (`named`, `$BERTH_CONFIG` or the default path), then the
 * environment. `readText` decides how to handle a FIFO as the file: it is refused, unless the caller waits
 * for its writer. Throws a SettingsError whose one-line message names the file, the key and (unless it is a
 * secret) the value.
 */
export async function loadSettings(
  named: string | undefined,
  env: Env,
  readText: ReadText = readTextFile,
): Promise<Settings> {
  const values = new Map<string, unknown>(SETTING_ROWS.map(([key, fallback]) => [key, fallback]));
  const rules = new Map(SETTING_ROWS.map(([key, , rule]) => [key, rule]));
  const put = (where: string, key: string, value: unknown): void => {
    const rule = rules.get(key);
    if (!rule) throw new SettingsError(`${where}: unknown key ${formatSetting(key, value)}`);
    if (!rule.fits(value))
      throw new SettingsError(`${where}: ${formatSetting(key, value)} must be ${rule.what}`);
    values.set(key, value);
  };
  const file = configFile(named, env);
  if (existsSync(file.path)) {
    for (const [key, value] of await readConfigFile(file.path, readText)) put(file.path, key, value);
  } else if (file.named) {
    throw new SettingsError(`${file.path}: the configuration file does not exist`);
  }
  for (const [variable, key, parse] of ENV_OVERRIDES) {
    const value = env[variable];
    if (value && !(variable === 'BERTH_PORT' && value.startsWith('tcp://'))) put(variable, key, parse(value));
  }
  values.set('notify', noticeRules(values.get('notify'), file.path));
  const settings = buildSettings(values);
  checkCombinations(settings, file.path);
  return settings;
}
