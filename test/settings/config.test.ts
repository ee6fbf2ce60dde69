import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configFile, loadSettings } from '../../src/settings/config.ts';
import {
  ensureSecret,
  openStateDir,
  readSecret,
  removeAddressFile,
  stateDirPath,
  writeAddressFile,
} from '../../src/settings/state_dir.ts';
import { stateDirId } from '../../src/settings/state_paths.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-config-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (content: string): string => {
  const path = join(folder, 'config.toml');
  writeFileSync(path, content);
  return path;
};
const nothing = { XDG_CONFIG_HOME: '/nonexistent' };

describe('the configuration file', () => {
  it('is optional at its default place', async () => {
    const settings = await loadSettings(undefined, nothing);
    expect(settings.port).toBe(11611);
    expect(settings.bind).toBe('127.0.0.1');
    expect(settings.agents).toEqual({ domain: 'agents.localhost', ports: [8100, 8200] });
    expect(settings.cloud.sweep_interval_ms).toBe(600_000);
  });

  it('prevents the start if it is named but missing', async () => {
    await expect(loadSettings(join(folder, 'absent.toml'), nothing)).rejects.toThrow(
      /absent\.toml: .*does not exist/,
    );
    await expect(loadSettings(undefined, { BERTH_CONFIG: join(folder, 'absent.toml') })).rejects.toThrow(
      /absent\.toml/,
    );
  });

  it('changes only the keys that it sets', async () => {
    const path = write(
      'port = 0\nallowed_extensions = ["abc"]\n[auth]\ntoken = "t"\n[cloud]\nallow_addresses = ["10.0.0.0/8", "fd00::/8"]\n',
    );
    const settings = await loadSettings(path, {});
    expect([settings.port, settings.auth.token, settings.gateway.port]).toEqual([0, 't', 11612]);
    expect(settings.cloud.allow_addresses).toEqual(['10.0.0.0/8', 'fd00::/8']);
  });

  it('can allow origins if there is a token', async () => {
    const origins = ['http://localhost:5173', 'https://tools.example', 'http://[::1]:8080'];
    const path = write(`allowed_origins = ${JSON.stringify(origins)}\n`);
    const { allowed_origins: read } = await loadSettings(path, { BERTH_AUTH_TOKEN: 't' });
    expect(read).toEqual(origins);
  });

  it.each([
    ['port = 70000', 'port = 70000 must be an integer from 0 to 65535'],
    ['port = "1"', 'port = "1" must be'],
    ['prot = 1', 'unknown key prot = 1'],
    ['auth = 3', 'unknown key auth = (not shown)'],
    ['[auth]\ntokn = "SECRET"', 'unknown key auth.tokn = (not shown)'],
    ['token = "SECRET"', 'unknown key token = (not shown)'],
    ['[auth]\ntoken = "SECRET a b"', 'auth.token = (not shown) must be'],
    ['[cloud]\ntoken = ["SECRET"]', 'cloud.token = (not shown) must be'],
    ['[auth]\ntoken = SECRET', 'Invalid TOML'],
    ['[auth]\ntoken = "SECRET', 'Invalid TOML'],
    ['[auth]\ntoken = "SECRET"x', 'Invalid TOML'],
    ['[agents]\nports = [9, 8]', 'agents.ports = [9,8] must be two ports'],
    ['[agents]\ndomain = "Bad_Domain"', 'agents.domain'],
    ['[shutdown]\nservices = "maybe"', 'shutdown.services = "maybe" must be "stop" or "keep"'],
    ['bind = "localhost"', 'bind = "localhost" must be an IP address'],
    ['[cloud]\nallow_addresses = ["10.0.0.0/40"]', 'cloud.allow_addresses'],
    ['allowed_origins = ["http://localhost:5173/"]\n[auth]\ntoken = "t"', 'allowed_origins'],
    ['allowed_origins = ["*"]\n[auth]\ntoken = "t"', 'must be a list of origins'],
    ['allowed_origins = ["https://*.example"]\n[auth]\ntoken = "t"', 'allowed_origins'],
    ['allowed_origins = ["null"]\n[auth]\ntoken = "t"', 'allowed_origins'],
    ['allowed_origins = ["http://localhost:5173"]', 'needs auth.token'],
    ['[cloud]\nbind = "0.0.0.0"', 'set cloud.tls_cert and cloud.tls_key'],
    ['[cloud]\ntls_cert = "/x"', 'must be set together'],
    ['a.b.c = 1', 'unknown key a.b.c = 1'],
    ['"__proto__" = 1', 'unknown key __proto__'],
    ['port = ', 'Invalid TOML'],
  ])('is refused for %j with one line that names file, key and value', async (source, message) => {
    const path = write(source);
    const error: Error = await loadSettings(path, {}).then(
      () => expect.unreachable(),
      (reason: Error) => reason,
    );
    expect(error.message).toContain(path);
    expect(error.message).toContain(message);
    expect(error.message).not.toContain('\n');
    expect(error.message).not.toContain('SECRET');
  });

  it('can bind the cloud listener off loopback behind TLS', async () => {
    const path = write('[cloud]\nbind = "0.0.0.0"\nbehind_tls = true\n');
    expect((await loadSettings(path, {})).cloud.bind).toBe('0.0.0.0');
  });

  it('can give a loopback address in any spelling', async () => {
    const path = write('[cloud]\nbind = "0:0:0:0:0:0:0:1"\n');
    expect((await loadSettings(path, {})).cloud.bind).toBe('0:0:0:0:0:0:0:1');
  });

  it('is overridden by the environment, except by empty values and the port variable of a Kubernetes service', async () => {
    const path = write('port = 1\n[auth]\ntoken = "file"\n');
    const env = {
      BERTH_PORT: 'tcp://10.0.0.1:80',
      BERTH_AUTH_TOKEN: '',
      BERTH_CLOUD_TOKEN: 'c',
      BERTH_BIND: '127.0.0.2',
    };
    const settings = await loadSettings(path, env);
    expect([settings.port, settings.auth.token, settings.cloud.token, settings.bind]).toEqual([
      1,
      'file',
      'c',
      '127.0.0.2',
    ]);
    expect((await loadSettings(path, { BERTH_PORT: '0' })).port).toBe(0);
    await expect(loadSettings(path, { BERTH_PORT: 'x' })).rejects.toThrow('BERTH_PORT: port = "x"');
  });

  it('is found by argument, then BERTH_CONFIG, then XDG, and relative XDG values are ignored', () => {
    expect(configFile('/a', { BERTH_CONFIG: '/b' })).toEqual({ path: '/a', named: true });
    expect(configFile(undefined, { BERTH_CONFIG: '/b' })).toEqual({ path: '/b', named: true });
    expect(configFile(undefined, { XDG_CONFIG_HOME: '/c' })).toEqual({
      path: '/c/berth/config.toml',
      named: false,
    });
    expect(configFile(undefined, { XDG_CONFIG_HOME: 'c' }).path).toMatch(/\/\.config\/berth\/config\.toml$/);
    expect(stateDirPath(undefined, { XDG_STATE_HOME: '/s' })).toBe('/s/berth');
    expect(stateDirPath('/x', { BERTH_STATE_DIR: '/y' })).toBe('/x');
  });
});

describe('the state directory', () => {
  it('is created with mode 0700', () => {
    const path = join(folder, 'a', 'state');
    openStateDir(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('is refused if others can write to it, or if it is a file', () => {
    const path = join(folder, 'open');
    mkdirSync(path);
    chmodSync(path, 0o777);
    expect(() => openStateDir(path)).toThrow(/others can write/);
    expect(() => openStateDir(write(''))).toThrow(/cannot be made|no directory/);
  });

  it.runIf(process.getuid?.() === 0)('is refused if it belongs to another user', async () => {
    const { chownSync } = await import('node:fs');
    const path = join(folder, 'foreign');
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, 65534, 65534);
    expect(() => openStateDir(path)).toThrow(/belongs to another user/);
  });

  it('keeps secrets: created once with mode 0600, refused if others can read them or if they are links', () => {
    const path = join(folder, 'secret');
    const made = ensureSecret(path);
    expect(made.length).toBeGreaterThan(40);
    expect(ensureSecret(path).equals(made)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o644);
    expect(() => readSecret(path)).toThrow(/others can read it/);
    const link = join(folder, 'link');
    symlinkSync(path, link);
    expect(() => readSecret(link)).toThrow(/cannot be read/);
    expect(() => ensureSecret(link)).toThrow();
    expect(readSecret(join(folder, 'absent'))).toBeUndefined();
  });

  it('refuses an empty secret, and keeps one that another daemon has just created', () => {
    const path = join(folder, 'secret');
    for (const text of ['', '\n']) {
      writeFileSync(path, text, { mode: 0o600 });
      expect(() => ensureSecret(path)).toThrow(/is empty: remove it/);
    }
    rmSync(path);
    // Another daemon may have created it meanwhile: then that one counts.
    const other = ensureSecret(path, () => {
      writeFileSync(path, 'other', { mode: 0o600 });
      return Buffer.from('mine');
    });
    expect(other.toString()).toBe('other');
  });

  it('contains daemon.json with mode 0600', () => {
    writeAddressFile(folder, { pid: 1, startTime: 2, port: 3, gatewayPort: null, version: 'v' });
    expect(JSON.parse(readFileSync(join(folder, 'daemon.json'), 'utf8'))).toEqual({
      pid: 1,
      startTime: 2,
      port: 3,
      gatewayPort: null,
      version: 'v',
      stateId: stateDirId(folder),
    });
    expect(statSync(join(folder, 'daemon.json')).mode & 0o777).toBe(0o600);
  });

  it('is removed by the daemon that it names only', () => {
    const record = { startTime: 2, port: 3, gatewayPort: null, version: 'v' };
    writeAddressFile(folder, { pid: process.ppid, ...record });
    removeAddressFile(folder);
    expect(existsSync(join(folder, 'daemon.json'))).toBe(true);
    writeAddressFile(folder, { pid: process.pid, ...record });
    removeAddressFile(folder);
    expect(existsSync(join(folder, 'daemon.json'))).toBe(false);
  });

  it('is written through no link, and a folder in place of daemon.json does not prevent the end', () => {
    writeFileSync(join(folder, 'victim'), 'mine');
    symlinkSync(join(folder, 'victim'), join(folder, 'daemon.json.new'));
    writeAddressFile(folder, { pid: 1, startTime: 2, port: 3, gatewayPort: null, version: 'v' });
    expect(readFileSync(join(folder, 'victim'), 'utf8')).toBe('mine');
    rmSync(join(folder, 'daemon.json'));
    mkdirSync(join(folder, 'daemon.json'));
    expect(() => removeAddressFile(folder)).not.toThrow();
  });
});
