import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { certificate } from '../../kit/certificates.ts';
import { localKubeconfig } from '../../kit/kube_real.ts';

const NOW = Date.UTC(2026, 10, 20);
const base64 = (text: string): string => Buffer.from(text).toString('base64');

const ca = certificate({ commonName: 'test ca' });
const client = certificate({ commonName: 'me', issuer: ca });
const other = certificate({ commonName: 'you', issuer: ca });

/** A kubeconfig as JSON (which is YAML), with parts replaced. */
function config(parts: { cluster?: object; user?: object; context?: object; root?: object } = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', ...parts.context } }],
    clusters: [
      {
        name: 'k',
        cluster: parts.cluster ?? {
          server: 'https://10.0.0.1:6443',
          'certificate-authority-data': base64(ca.cert),
        },
      },
    ],
    users: [{ name: 'u', user: parts.user ?? { token: 'secret-token' } }],
    ...parts.root,
  });
}
const server = (url: string): string => config({ cluster: { server: url } });

/** The refused paths, with the messages; fails when the kubeconfig is accepted or fails otherwise. */
function refused(text: string): { path: string; message: string }[] {
  try {
    parseKubeconfig(text, NOW);
  } catch (error) {
    if (!isFailure(error)) throw error;
    expect(error.code).toBe('invalid_spec');
    return (error.detail as { details: { path: string; message: string }[] }).details;
  }
  throw new Error('was accepted');
}
const paths = (text: string): string[] => refused(text).map(({ path }) => path);

describe('an accepted kubeconfig', () => {
  it('becomes the closed record of its current context', () => {
    expect(parseKubeconfig(config(), NOW)).toEqual({
      server: 'https://10.0.0.1:6443',
      ca: ca.cert,
      tlsServerName: null,
      namespace: null,
      credential: { kind: 'token', token: 'secret-token' },
    });
  });

  it('may be base64, and gives the same record', () => {
    expect(parseKubeconfig(base64(config()), NOW)).toEqual(parseKubeconfig(config(), NOW));
    expect(parseKubeconfig(`${base64(config())}\n`, NOW)).toEqual(parseKubeconfig(config(), NOW));
  });

  const wrapped = (text: string): string => text.replace(/.{76}/g, '$&\n');

  it('may be base64 as its usual command writes it, with line breaks', () => {
    expect(parseKubeconfig(`${wrapped(base64(config()))}\n`, NOW)).toEqual(parseKubeconfig(config(), NOW));
    expect(parseKubeconfig(wrapped(base64(config())).replaceAll('\n', '\r\n'), NOW)).toEqual(
      parseKubeconfig(config(), NOW),
    );
  });

  it.each(['', '='])('may be base64url, with padding or without (%j)', (padding) => {
    // A text whose base64 has both of the characters that differ, and one byte over.
    const text = config({ user: { token: '~~~???>>>~~~???>>>' } });
    const padded = text + ' '.repeat((5 - (Buffer.byteLength(text) % 3)) % 3);
    const url = Buffer.from(padded).toString('base64url') + padding;
    expect(url).toMatch(/[-_]/);
    expect(parseKubeconfig(url, NOW)).toEqual(parseKubeconfig(text, NOW));
  });

  it('may contain certificates as YAML block scalars', () => {
    const lines = wrapped(base64(ca.cert)).replaceAll('\n', '\n      ');
    const text = `current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters:
- name: k
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: |
      ${lines}
users: [{name: u, user: {token: secret-token}}]
`;
    expect(parseKubeconfig(text, NOW)).toEqual(parseKubeconfig(config(), NOW));
  });

  it.each([{ apiVersion: undefined }, { kind: undefined }, { apiVersion: undefined, kind: undefined }])(
    'is accepted without %j',
    (root) => {
      expect(parseKubeconfig(config({ root }), NOW)).toEqual(parseKubeconfig(config(), NOW));
    },
  );

  it('with a token and a certificate uses the certificate, which an API server tries first', () => {
    const certificate = {
      'client-certificate-data': base64(client.cert),
      'client-key-data': base64(client.key),
    };
    const both = parseKubeconfig(config({ user: { token: 't', ...certificate } }), NOW);
    expect(both).toEqual(parseKubeconfig(config({ user: certificate }), NOW));
    expect(both.credential.kind).toBe('certificate');
  });

  it('keeps the namespace of its context if it is valid', () => {
    const namespaceOf = (namespace: unknown) =>
      parseKubeconfig(config({ context: { namespace } }), NOW).namespace;
    expect(['web', '../x', 7].map(namespaceOf)).toEqual(['web', null, null]);
  });

  it('may be the block YAML that kubectl writes, with extensions and preferences', () => {
    const text = `# made by hand
apiVersion: v1
kind: Config
preferences: {}
current-context: c
contexts:
- name: c
  context: {cluster: k, user: u, namespace: web}
- name: elsewhere
  context: {cluster: k, user: dangerous}
clusters:
- name: k
  cluster:
    server: https://Example.COM:443/prefix/../k8s//
    tls-server-name: api.internal
    insecure-skip-tls-verify: false
    extensions:
    - name: minikube
      extension: {version: v1}
users:
- name: u
  user:
    client-certificate-data: ${base64(client.cert)}
    client-key-data: ${base64(client.key)}
- name: dangerous
  user:
    exec: {command: sh}
`;
    expect(parseKubeconfig(text, NOW)).toEqual({
      server: 'https://example.com/k8s',
      ca: null,
      tlsServerName: 'api.internal',
      namespace: 'web',
      credential: { kind: 'certificate', certificate: client.cert, key: client.key },
    });
  });

  it('keeps only the certificates of PEM fields', () => {
    const noisy = `Bag Attributes\n  secret: x\n${ca.cert}trailing`;
    const text = config({
      cluster: { server: 'https://h', 'certificate-authority-data': base64(noisy) },
    });
    expect(parseKubeconfig(text, NOW).ca).toBe(ca.cert);
  });
});

describe('a kubeconfig with more than address and credentials', () => {
  const marker = join(tmpdir(), `berth-kubeconfig-${process.pid}`);
  const login = { token: 't' };
  it.each<[string, string, object]>([
    ['exec', 'users[0].user', { exec: { apiVersion: 'v1', command: 'touch', args: [marker] } }],
    ['auth-provider', 'users[0].user', { 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'touch' } } }],
    ['client-certificate', 'users[0].user', { 'client-certificate': '/etc/passwd' }],
    ['client-key', 'users[0].user', { 'client-key': '/etc/passwd' }],
    ['tokenFile', 'users[0].user', { tokenFile: '/etc/passwd' }],
    ['token-file', 'users[0].user', { 'token-file': '/etc/passwd' }],
    ['username', 'users[0].user', { username: 'root' }],
    ['password', 'users[0].user', { password: 'x' }],
    ['as', 'users[0].user', { as: 'system:admin' }],
    ['as-uid', 'users[0].user', { 'as-uid': '0' }],
    ['as-groups', 'users[0].user', { 'as-groups': ['system:masters'] }],
    ['as-user-extra', 'users[0].user', { 'as-user-extra': { a: ['b'] } }],
    ['surprise', 'users[0].user', { surprise: true }],
    ['certificate-authority', 'clusters[0].cluster', { 'certificate-authority': '/etc/passwd' }],
    ['proxy-url', 'clusters[0].cluster', { 'proxy-url': 'http://evil' }],
    ['insecure-skip-tls-verify', 'clusters[0].cluster', { 'insecure-skip-tls-verify': true }],
    ['insecure-skip-tls-verify', 'clusters[0].cluster', { 'insecure-skip-tls-verify': 'false' }],
    ['__proto__', 'clusters[0].cluster', JSON.parse('{"__proto__": {"server": "x"}}')],
  ])('is refused by name: %s', (field, where, value) => {
    const text = where.startsWith('users')
      ? config({ user: { ...login, ...value } })
      : config({}).replace('"server":', `${JSON.stringify(value).slice(1, -1)},"server":`);
    expect(paths(text)).toEqual([`kubeconfig.${where}.${field}`]);
    expect(paths(base64(text))).toEqual([`kubeconfig.${where}.${field}`]);
    expect(existsSync(marker)).toBe(false);
  });

  it.each([
    ['surprise', { surprise: 1 }],
    ['__proto__', JSON.parse('{"__proto__": {"x": 1}}')],
  ])('is refused with a field %s beside the parts, or beside the name of one', (field, value) => {
    const added = `${JSON.stringify(value).slice(1, -1)},`;
    expect(paths(config().replace('{', `{${added}`))).toEqual([`kubeconfig.${field}`]);
    for (const [list, name] of Object.entries({ contexts: 'c', clusters: 'k', users: 'u' })) {
      const text = config().replace(`{"name":"${name}"`, `{${added}"name":"${name}"`);
      expect(paths(text)).toEqual([`kubeconfig.${list}[0].${field}`]);
    }
    expect(parseKubeconfig(config({ root: { preferences: {}, extensions: [] } }), NOW).namespace).toBe(null);
  });

  it('is refused with all wrong fields at once', () => {
    const text = config({
      cluster: { server: 'http://h', 'proxy-url': 'http://p' },
      user: { exec: {}, 'client-key': '/k' },
      root: { apiVersion: 'v2' },
    });
    expect(paths(text)).toEqual([
      'kubeconfig.apiVersion',
      'kubeconfig.clusters[0].cluster.proxy-url',
      'kubeconfig.users[0].user.exec',
      'kubeconfig.users[0].user.client-key',
      'kubeconfig.clusters[0].cluster.server',
      'kubeconfig.users[0].user',
    ]);
  });

  it('never appears in the message', () => {
    const said = JSON.stringify([
      refused(config({ user: { token: 'sec ret' } })),
      refused(config({ user: { token: 't', password: 'hunter2' } })),
      refused(
        config({ user: { 'client-certificate-data': base64('hunter2'), 'client-key-data': base64('k') } }),
      ),
      refused(`apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: hunter2, token: hunter2}}]`),
    ]);
    expect(said).not.toMatch(/hunter2|sec ret/);
  });
});

describe('the server', () => {
  it.each([
    ['http://10.0.0.1', 'https://'],
    ['10.0.0.1:6443', 'https://'],
    ['https://me:pw@10.0.0.1', 'user or password'],
    ['https://10.0.0.1/?x=1', 'query'],
    ['https://10.0.0.1/#x', 'fragment'],
    ['https://', 'https://'],
    ['file:///etc/passwd', 'https://'],
    ['unix:///var/run/docker.sock', 'https://'],
  ])('%s is refused', (url, reason) => {
    const [problem] = refused(server(url));
    expect(problem?.path).toBe('kubeconfig.clusters[0].cluster.server');
    expect(problem?.message).toContain(reason);
  });

  it('is normalized as in a browser, so that no spelling hides an address', () => {
    for (const spelling of ['https://0x7f.1', 'https://2130706433', 'https://127.1', 'https://0177.0.0.1'])
      expect(parseKubeconfig(server(spelling), NOW).server).toBe('https://127.0.0.1');
    expect(parseKubeconfig(server('https://[::ffff:7f00:1]:6443/'), NOW).server).toBe(
      'https://[::ffff:7f00:1]:6443',
    );
    expect(parseKubeconfig(server('https://①②⑦.0.0.1'), NOW).server).toBe('https://127.0.0.1');
  });
});

describe('what the record needs', () => {
  it.each<[string, string, string]>([
    ['no server', config({ cluster: {} }), 'kubeconfig.clusters[0].cluster.server'],
    ['no login', config({ user: {} }), 'kubeconfig.users[0].user'],
    [
      'a certificate without key',
      config({ user: { 'client-certificate-data': base64(client.cert) } }),
      'kubeconfig.users[0].user',
    ],
    ['a number for a token', config({ user: { token: 12345 } }), 'kubeconfig.users[0].user.token'],
    [
      'a token with a line break',
      config({ user: { token: 'a\nHost: evil' } }),
      'kubeconfig.users[0].user.token',
    ],
    ['a token too long', config({ user: { token: 'x'.repeat(16385) } }), 'kubeconfig.users[0].user.token'],
    [
      'a foreign key',
      config({
        user: { 'client-certificate-data': base64(client.cert), 'client-key-data': base64(other.key) },
      }),
      'kubeconfig.users[0].user.client-key-data',
    ],
    [
      'PEM that is none',
      config({ cluster: { server: 'https://h', 'certificate-authority-data': base64('x') } }),
      'kubeconfig.clusters[0].cluster.certificate-authority-data',
    ],
    [
      'PEM not in base64',
      config({ cluster: { server: 'https://h', 'certificate-authority-data': ca.cert } }),
      'kubeconfig.clusters[0].cluster.certificate-authority-data',
    ],
    [
      '21 CAs',
      config({ cluster: { server: 'https://h', 'certificate-authority-data': base64(ca.cert.repeat(21)) } }),
      'kubeconfig.clusters[0].cluster.certificate-authority-data',
    ],
    [
      'a server name with a space',
      config({ cluster: { server: 'https://h', 'tls-server-name': 'a b' } }),
      'kubeconfig.clusters[0].cluster.tls-server-name',
    ],
    ['no current context', config({ root: { 'current-context': '' } }), 'kubeconfig.current-context'],
    ['a context that is not there', config({ root: { 'current-context': 'x' } }), 'kubeconfig.contexts'],
    [
      'two contexts of one name',
      config({ root: { contexts: [1, 2].map(() => ({ name: 'c', context: { cluster: 'k', user: 'u' } })) } }),
      'kubeconfig.contexts',
    ],
    [
      'two users of one name',
      config({ root: { users: [1, 2].map(() => ({ name: 'u', user: { token: 't' } })) } }),
      'kubeconfig.users',
    ],
    ['a list that is none', config({ root: { clusters: { k: {} } } }), 'kubeconfig.clusters'],
    ['another kind', config({ root: { kind: 'Pod' } }), 'kubeconfig.kind'],
  ])('%s is refused', (_, text, path) => {
    expect(paths(text)).toEqual([path]);
  });

  it('refuses certificates that have expired', () => {
    const old = { from: Date.UTC(2020, 0, 1), until: Date.UTC(2021, 0, 1) };
    const oldCa = certificate({ commonName: 'old ca', ...old });
    const oldClient = certificate({ commonName: 'old', issuer: ca, ...old });
    const withCa = (pem: string) =>
      config({ cluster: { server: 'https://h', 'certificate-authority-data': base64(pem) } });
    expect(paths(withCa(oldCa.cert))).toEqual(['kubeconfig.clusters[0].cluster.certificate-authority-data']);
    expect(parseKubeconfig(withCa(oldCa.cert + ca.cert), NOW).ca).toBe(oldCa.cert + ca.cert);
    const user = {
      'client-certificate-data': base64(oldClient.cert),
      'client-key-data': base64(oldClient.key),
    };
    expect(paths(config({ user }))).toEqual(['kubeconfig.users[0].user.client-certificate-data']);
  });

  it('refuses weak and locked keys', () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const weakClient = certificate({ commonName: 'weak', issuer: ca, keys: weak });
    const locked = client.keyObject
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
      .toString();
    for (const [cert, key] of [
      [weakClient.cert, weakClient.key],
      [client.cert, locked],
    ])
      expect(
        paths(
          config({
            user: { 'client-certificate-data': base64(cert ?? ''), 'client-key-data': base64(key ?? '') },
          }),
        ),
      ).toEqual(['kubeconfig.users[0].user.client-key-data']);
  });
});

describe('YAML with special features', () => {
  const yaml = (extra: string): string => `apiVersion: v1\nkind: Config\n${extra}`;
  it.each<[string, string, RegExp]>([
    ['two documents', yaml('---\nkind: Config'), /MULTIPLE_DOCS/],
    ['an alias', yaml('a: &x 1\nb: *x'), /anchors/],
    ['an alias bomb', yaml('a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]'), /anchors/],
    ['a bare alias', yaml('b: *x'), /BAD_ALIAS|aliases/],
    ['a merge key', yaml('a:\n  <<: {b: 1}'), /merge/],
    ['a tag', yaml('a: !!js/function "x"'), /tags/],
    ['a harmless tag', yaml('a: !!str 1'), /tags/],
    ['binary', yaml('a: !!binary AAAA'), /tags/],
    ['a tag on a map', yaml('a: !!set {b}'), /tags/],
    ['a YAML 1.1 directive', '%YAML 1.1\n---\napiVersion: v1\n', /directives/],
    ['a TAG directive', '%TAG ! tag:x,2000:\n---\napiVersion: v1\n', /directives/],
    ['a key twice', yaml('users: []\nusers: []'), /users: is there twice/],
    ['a key that is a list', yaml('? [a]\n: b'), /NON_STRING_KEY/],
    ['nested too deeply', yaml(`a: ${'['.repeat(25)}${']'.repeat(25)}`), /nested too deeply/],
    ['nested absurdly', `a: ${'['.repeat(100_000)}`, /kubeconfig/],
    ['a list', 'a: b\n'.replace('a: b', '- a: b'), /mapping/],
    ['a tab', 'a:\n\tb: 1', /TAB_AS_INDENT/],
    ['infinity', yaml('a: .inf'), /finite/],
    ['NUL', 'a: "\0"', /NUL/],
    ['a null key', yaml('? \n: c'), /every key must be a string/],
    ['nothing', '', /YAML document/],
    ['base64 of base64', base64(base64(config())), /mapping|YAML/],
    ['base64 with padding bits', `${base64('a: b')}=`, /base64/],
    ['base64 of invalid UTF-8', Buffer.from([0x61, 0x3a, 0xff]).toString('base64'), /base64/],
  ])('%s is refused', (_, text, message) => {
    const said = refused(text)
      .map((row) => `${row.path}: ${row.message}`)
      .join('; ');
    expect(said).toMatch(message);
  });

  it('is refused when it is larger than 256 KiB', () => {
    expect(() => parseKubeconfig(`a: ${'x'.repeat(256 * 1024)}`, NOW)).toThrow(/262144 bytes/);
  });

  it('is checked for 15,000 keys without comparing each with every other', () => {
    const many = Array.from({ length: 15_000 }, (_, index) => `k${index}: 1`).join('\n');
    expect(paths(many)).toContain('kubeconfig.current-context');
  });

  it('gives a record or a Failure for any text', () => {
    const words = fc.constantFrom(
      'apiVersion: v1\n',
      'kind: Config\n',
      'users:\n',
      '- name: u\n',
      '  user:\n',
      '    token: t\n',
      '&a ',
      '*a',
      '<<: ',
      '!!str ',
      '{',
      '}',
      '[',
      ']',
      ': ',
      '\n',
      '---\n',
      '"',
      "'",
      '|\n',
      '\t',
      '  ',
      '?',
      '%YAML 1.1\n',
      '#',
      '__proto__: ',
      'constructor: ',
      'current-context: c\n',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.string()), { maxLength: 40 }), (parts) => {
        try {
          parseKubeconfig(parts.join(''), NOW);
        } catch (error) {
          expect(isFailure(error) ? error.code : error).toBe('invalid_spec');
        }
      }),
      { numRuns: 500 },
    );
    expect(({} as { server?: string }).server).toBeUndefined();
  });
});

describe('kubeconfigs of a real cluster', () => {
  const found = ['admin', 'token', 'limited'].flatMap((name) => localKubeconfig(name) ?? []);
  it.skipIf(found.length === 0)(
    'are all accepted (skipped: no cluster; BERTH_TEST_KUBECONFIG names one)',
    () => {
      for (const text of found) {
        const access = parseKubeconfig(text, Date.now());
        expect(access.server).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
        expect(access.ca).toMatch(/^-----BEGIN CERTIFICATE/);
      }
    },
  );
});
