import { describe, expect, it } from 'vitest';
import { AccessKeys } from '../../../src/front/api/access_keys.ts';
import { Guard, type GuardOptions, isCloudPath } from '../../../src/front/api/guard.ts';
import { isPublicPath } from '../../../src/front/api/public_paths.ts';
import type { HttpExchange } from '../../../src/front/server/http_server.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { isLoopback } from '../../../src/settings/loopback.ts';

interface Asked {
  method?: string;
  path?: string;
  peer?: string;
  handshake?: boolean;
  headers?: Record<string, string>;
}

function asked({
  method = 'GET',
  path = '/v1/services',
  peer = '127.0.0.1',
  handshake = false,
  headers = {},
}: Asked) {
  const all: Record<string, string> = { host: 'localhost:11611', ...headers };
  const unused = () => {
    throw new Error('a guard only looks');
  };
  const exchange: HttpExchange = {
    method,
    path,
    isHandshake: handshake,
    query: unused,
    header: (name) => all[name] ?? '',
    head: { fault: null, hasBody: false, isChunked: false },
    whenGone: unused,
    markTrusted: unused,
    peerAddress: () => peer,
    readBody: unused,
    send: unused,
    startStream: unused,
    acceptWebSocket: unused,
  };
  return exchange;
}

interface GuardSetup extends Partial<Omit<GuardOptions, 'cloudKeys'>> {
  token?: string;
  cloudToken?: string | null;
}

const keysOf = (token: string): AccessKeys => new AccessKeys(token, systemClock);

const guard = ({ token = '', cloudToken = 'cloud-secret', ...options }: GuardSetup = {}): Guard =>
  new Guard({
    bind: '127.0.0.1',
    port: 11611,
    keys: keysOf(token),
    cloudKeys: cloudToken === null ? null : keysOf(cloudToken),
    views: new CloudViews(),
    allowedExtensions: [],
    allowedOrigins: [],
    ...options,
  });
const code = (of: Guard, what: Asked): string => of.check(asked(what)).refusal?.code ?? 'passes';

describe('the peer', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.8.9.10', true],
    ['::1', true],
    ['0000:0000:0000:0000:0000:0000:0000:0001', true],
    ['::ffff:127.0.0.1', true],
    ['0000:0000:0000:0000:0000:ffff:7f00:0001', true],
    ['10.0.0.1', false],
    ['192.168.0.4', false],
    ['::ffff:10.0.0.1', false],
    ['::', false],
    ['0.0.0.0', false],
    ['fe80::1', false],
    ['2001:db8::1', false],
    ['', false],
    ['localhost', false],
    ['127.0.0.1.evil.example', false],
  ])('%s is loopback: %s', (address, expected) => expect(isLoopback(address)).toBe(expected));

  it('is checked by the guard if the kernel does not check it', () => {
    for (const bind of ['0.0.0.0', '::', '192.168.0.4']) {
      expect(code(guard({ bind }), { peer: '192.168.0.9' })).toBe('forbidden_origin');
      expect(code(guard({ bind }), { peer: '127.0.0.1' })).toBe('passes');
    }
  });

  it('is checked before everything else', () => {
    const headers = { host: 'evil.example', origin: 'http://evil.example' };
    expect(code(guard({ bind: '0.0.0.0', token: 'x' }), { peer: '8.8.8.8', headers })).toBe(
      'forbidden_origin',
    );
  });
});

describe('the Host', () => {
  it.each([
    'localhost:11611',
    'LocalHost:11611',
    'localhost.:11611',
    '127.0.0.1:11611',
    '127.0.0.1.:11611',
    '[::1]:11611',
  ])('%s is accepted', (host) => expect(code(guard(), { headers: { host } })).toBe('passes'));

  it.each([
    '',
    ' ',
    'localhost',
    'localhost:80',
    'localhost:11612',
    'localhost:011611',
    'localhost:11611 ',
    'localhost:11611:11611',
    'localhost:',
    'localhost..:11611',
    'localhost:11611.',
    'localhost:+11611',
    'localhost:1e9',
    'evil.example:11611',
    'evil.example',
    'localhost.evil.example:11611',
    'xlocalhost:11611',
    'web.localhost:11611',
    '127.0.0.2:11611',
    '0.0.0.0:11611',
    '0:11611',
    '::1:11611',
    '[::1',
    '[::1]',
    '[::1]:',
    '[::ffff:127.0.0.1]:11611',
    'user@localhost:11611',
    'localhost/x:11611',
    'localhost:11611/',
    'http://localhost:11611',
    'localhost\u0000:11611',
    'lоcalhost:11611',
    'localhost,evil.example:11611',
    '%6cocalhost:11611',
    '['.repeat(5000),
    '.'.repeat(5000),
    `${'a.'.repeat(3000)}:11611`,
    '\\',
    ':',
    ':11611',
    '[]:11611',
  ])('%s is refused', (host) => {
    expect(code(guard(), { headers: { host } })).toBe('forbidden_host');
    expect(code(guard({ token: 'x' }), { headers: { host } })).toBe('forbidden_host');
  });

  it('may omit port 80', () => {
    const at80 = guard({ port: 80 });
    expect(
      ['localhost', 'localhost:80', '[::1]', 'LOCALHOST.'].map((host) => code(at80, { headers: { host } })),
    ).toEqual(['passes', 'passes', 'passes', 'passes']);
    expect(code(at80, { headers: { host: 'localhost:11611' } })).toBe('forbidden_host');
  });

  it('may be the configured address, but a wildcard adds no name', () => {
    expect(code(guard({ bind: '127.0.0.2' }), { headers: { host: '127.0.0.2:11611' } })).toBe('passes');
    expect(code(guard({ bind: 'fd00::1' }), { headers: { host: '[fd00::1]:11611' } })).toBe('passes');
    for (const host of ['[FD00::A]:11611', '[fd00::a]:11611', '[fd00:0::a]:11611'])
      expect(code(guard({ bind: 'FD00:0::A' }), { headers: { host } })).toBe('passes');
    expect(code(guard({ bind: 'fe80::1%eth0' }), { headers: { host: 'localhost:11611' } })).toBe('passes');
    expect(code(guard({ bind: '0.0.0.0' }), { headers: { host: '0.0.0.0:11611' } })).toBe('forbidden_host');
    expect(code(guard({ bind: '::' }), { headers: { host: '[::]:11611' } })).toBe('forbidden_host');
  });
});

const EXTENSION = 'chrome-extension://abcdefghijklmnopabcdefghijklmnop';

describe('the Origin', () => {
  it.each(['http://localhost:11611', 'http://127.0.0.1:11611', 'http://[::1]:11611'])(
    "%s is the daemon's own",
    (origin) => {
      const { refusal, origin: cors } = guard().check(asked({ method: 'POST', headers: { origin } }));
      expect([refusal, cors]).toEqual([null, '']);
    },
  );

  it.each([EXTENSION, 'chrome-extension://A.b-9', 'chrome-extension://-', 'chrome-extension://x.'])(
    '%s is an extension',
    (origin) => {
      const { refusal, origin: cors } = guard().check(asked({ method: 'POST', headers: { origin } }));
      expect([refusal, cors]).toEqual([null, origin]);
    },
  );

  it.each([
    'null',
    'http://localhost',
    'http://localhost:3000',
    'https://localhost:11611',
    'http://localhost:11611/',
    'http://LOCALHOST:11611',
    'http://web.localhost:11611',
    'http://evil.example',
    'http://localhost:11611.evil.example',
    'file://',
    'chrome-extension://',
    'chrome-extension://.abc',
    'chrome-extension://abc/',
    'chrome-extension://abc/x',
    'chrome-extension://abc:1',
    'chrome-extension://a_b',
    'chrome-extension://a b',
    'chrome-extension://abc\n',
    'chrome-extension:abc',
    'Chrome-Extension://abc',
    'moz-extension://abc',
    'xchrome-extension://abc',
    `${EXTENSION}, http://evil.example`,
    'chrome-extension://ä',
    '\u0000',
    'x'.repeat(10_000),
  ])('%s is refused, also for reads', (origin) => {
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'PATCH', 'OPTIONS'])
      expect(code(guard(), { method, headers: { origin } })).toBe('forbidden_origin');
    expect(code(guard(), { handshake: true, headers: { origin } })).toBe('forbidden_origin');
    expect(code(guard(), { path: '/', headers: { origin } })).toBe('forbidden_origin');
    expect(code(guard(), { path: '/livez', headers: { origin } })).toBe('forbidden_origin');
  });

  it('must be one of the allowed extensions when some are named', () => {
    const narrow = guard({ allowedExtensions: ['abc'] });
    expect(code(narrow, { headers: { origin: 'chrome-extension://abc' } })).toBe('passes');
    expect(code(narrow, { headers: { origin: 'chrome-extension://abcd' } })).toBe('forbidden_origin');
    narrow.reload({ allowedExtensions: ['abcd'], allowedOrigins: [] });
    expect(code(narrow, { headers: { origin: 'chrome-extension://abcd' } })).toBe('passes');
    expect(code(narrow, { headers: { origin: 'chrome-extension://abc' } })).toBe('forbidden_origin');
  });
});

describe('an allowed origin', () => {
  const page = 'http://localhost:5173';
  const open = guard({ token: 'secret', allowedOrigins: [page, 'https://tools.example'] });

  it('may call with the token, and is named for CORS', () => {
    for (const origin of [page, 'https://tools.example']) {
      const headers = { origin, 'sec-fetch-site': 'cross-site', authorization: 'Bearer secret' };
      for (const method of ['GET', 'POST']) {
        const { refusal, origin: cors } = open.check(asked({ method, headers }));
        expect([refusal, cors]).toEqual([null, origin]);
      }
      expect(code(open, { headers: { origin } })).toBe('unauthorized');
    }
  });

  it.each([
    'http://localhost:5174',
    'https://localhost:5173',
    'http://localhost:5173/',
    'http://LOCALHOST:5173',
  ])('does not include %s', (origin) =>
    expect(code(open, { headers: { origin, authorization: 'Bearer secret' } })).toBe('forbidden_origin'),
  );

  it('of an agent counts as a wrong one, not as none, in whatever form it is sent', () => {
    const wrong = `agent-${'0'.repeat(16)}-bot?.${'x'.repeat(43)}`;
    const bearer = 'base64url.bearer.authorization.berth.';
    for (const protocol of [
      `${bearer}${wrong}`,
      `${bearer}${Buffer.from(wrong).toString('base64')}`,
      `${bearer}${Buffer.from(wrong).toString('base64url')}==`,
      `${bearer.toUpperCase()}${Buffer.from(wrong).toString('base64url')}`,
    ])
      expect(
        code(guard({}), {
          handshake: true,
          headers: { 'sec-websocket-protocol': `berth.v1, ${protocol}` },
        }),
      ).toBe('unauthorized');
    expect(code(guard({}), { headers: { authorization: `Bearer\t${wrong}` } })).toBe('unauthorized');
    expect(code(guard({}), { handshake: true, headers: { 'sec-websocket-protocol': 'berth.v1' } })).toBe(
      'passes',
    );
  });

  it('changes with a reload', () => {
    const changing = guard();
    expect(code(changing, { headers: { origin: page } })).toBe('forbidden_origin');
    changing.reload({ allowedExtensions: [], allowedOrigins: [page] });
    expect(code(changing, { headers: { origin: page } })).toBe('passes');
  });
});

describe('Sec-Fetch-Site', () => {
  it.each([
    ['', 'passes'],
    ['none', 'passes'],
    ['same-origin', 'passes'],
    ['same-site', 'forbidden_origin'],
    ['cross-site', 'forbidden_origin'],
    ['SAME-ORIGIN', 'forbidden_origin'],
    ['rubbish', 'forbidden_origin'],
  ])('"%s" without Origin: %s', (site, expected) => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'DELETE', 'PATCH', 'PUT', 'FOO'])
      for (const path of ['/v1/services', '/v1/services/web/logs', '/livez', '/', '/k8s/clusters'])
        expect(code(guard({ cloudToken: null }), { method, path, headers: { 'sec-fetch-site': site } })).toBe(
          expected,
        );
  });

  it.each(['cross-site', 'same-site'])('%s allows links to pages, and to nothing else', (site) => {
    const visit = { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    for (const path of ['/', '/openapi.json', '/schema/berth.json'])
      expect(code(guard({ token: 'x' }), { path, headers: visit })).toBe('passes');
    for (const path of ['/v1/services', '/v1/services/web/logs', '/v1/version', '/nothing'])
      expect(code(guard(), { path, headers: visit })).toBe('forbidden_origin');
    for (const other of [{ 'sec-fetch-mode': 'no-cors' }, { 'sec-fetch-dest': 'iframe' }])
      expect(code(guard(), { path: '/', headers: { ...visit, ...other } })).toBe('forbidden_origin');
    expect(code(guard(), { method: 'POST', path: '/', headers: visit })).toBe('forbidden_origin');
  });

  it('does not matter when the Origin is allowed', () => {
    const headers = { origin: EXTENSION, 'sec-fetch-site': 'cross-site' };
    expect(code(guard(), { method: 'POST', headers })).toBe('passes');
  });
});

describe('the token', () => {
  const locked = () => guard({ token: 'correct horse' });

  it.each([
    ['Bearer correct horse', 'passes'],
    ['bearer correct horse', 'passes'],
    ['BEARER  correct horse', 'passes'],
    ['', 'unauthorized'],
    ['Bearer', 'unauthorized'],
    ['Bearer ', 'unauthorized'],
    ['Bearer correct hors', 'unauthorized'],
    ['Bearer correct horsf', 'unauthorized'],
    ['Bearer correct horse battery', 'unauthorized'],
    ['Bearer \u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000', 'unauthorized'],
    ['correct horse', 'unauthorized'],
    ['Basic correct horse', 'unauthorized'],
    ['Bearercorrect horse', 'unauthorized'],
    ['Bearer cloud-secret', 'unauthorized'],
    [`Bearer ${'x'.repeat(100_000)}`, 'unauthorized'],
  ])('"%s": %s', (authorization, expected) => {
    for (const path of [
      '/v1/services',
      '/v1/events',
      '/no/such/path',
      '/k8sx',
      '/livez/',
      '/dashboard/',
      '/dashboard/page.ts',
    ])
      expect(code(locked(), { path, headers: { authorization } })).toBe(expected);
  });

  it('is not needed when none is set', () => {
    expect(code(guard(), { headers: { authorization: 'Bearer whatever' } })).toBe('passes');
    expect(code(guard(), {})).toBe('passes');
  });

  it('of the cloud is the only one accepted for /k8s', () => {
    for (const path of ['/k8s', '/k8s/', '/k8s/clusters', '/k8s/nothing']) {
      for (const token of ['', 'correct horse']) {
        const both = guard({ token });
        expect(code(both, { path, headers: { authorization: 'Bearer cloud-secret' } })).toBe('passes');
        expect(code(both, { path, headers: { authorization: 'Bearer correct horse' } })).toBe('unauthorized');
        expect(code(both, { path })).toBe('unauthorized');
      }
    }
    expect(code(guard({ cloudToken: '' }), { path: '/k8s/clusters' })).toBe('unauthorized');
    const none = guard({ cloudToken: null });
    expect(code(none, { path: '/k8s/clusters' })).toBe('passes');
    expect(code(guard({ cloudToken: null, token: 'x' }), { path: '/k8s/clusters' })).toBe('unauthorized');
  });

  it.each(['/', '/livez', '/readyz', '/openapi.json', '/docs', '/schema/berth.json', '/dashboard/page.js'])(
    'is not required for %s',
    (path) => {
      expect(isPublicPath(path)).toBe(true);
      expect(code(locked(), { path })).toBe('passes');
    },
  );

  it('is not required for preflights', () => {
    const preflight = { origin: EXTENSION, 'access-control-request-method': 'POST' };
    expect(code(locked(), { method: 'OPTIONS', headers: preflight })).toBe('passes');
    expect(code(locked(), { method: 'OPTIONS', path: '/k8s/clusters', headers: preflight })).toBe('passes');
    expect(code(locked(), { method: 'OPTIONS' })).toBe('unauthorized');
    expect(code(locked(), { method: 'OPTIONS', headers: { origin: EXTENSION } })).toBe('unauthorized');
    expect(code(locked(), { method: 'POST', headers: preflight })).toBe('unauthorized');
  });

  it('may be a subprotocol of a WebSocket only', () => {
    const protocol = (token: string) =>
      `berth.v1, base64url.bearer.authorization.berth.${Buffer.from(token).toString('base64url')}`;
    const with_ = (token: string, handshake: boolean) =>
      code(locked(), { handshake, headers: { 'sec-websocket-protocol': protocol(token) } });
    expect(with_('correct horse', true)).toBe('passes');
    expect(with_('wrong', true)).toBe('unauthorized');
    expect(with_('correct horse', false)).toBe('unauthorized');
    const headers = { authorization: 'Bearer wrong', 'sec-websocket-protocol': protocol('correct horse') };
    expect(code(locked(), { handshake: true, headers })).toBe('unauthorized');
    expect(code(locked(), { handshake: true, headers: { 'sec-websocket-protocol': 'berth.v1' } })).toBe(
      'unauthorized',
    );
  });

  it('changes with a reload', () => {
    const keys = keysOf('correct horse');
    const changing = guard({ keys });
    keys.reload('new');
    expect(code(changing, { headers: { authorization: 'Bearer correct horse' } })).toBe('unauthorized');
    expect(code(changing, { headers: { authorization: 'Bearer new' } })).toBe('passes');
    keys.reload('');
    expect(code(changing, {})).toBe('passes');
  });

  it('that is wrong causes a refusal that an allowed extension can read', () => {
    const verdict = locked().check(asked({ headers: { origin: EXTENSION } }));
    expect([verdict.refusal?.code, verdict.origin]).toEqual(['unauthorized', EXTENSION]);
  });
});

describe('the cloud on an address of its own', () => {
  const own = guard({ bind: '0.0.0.0', cloudOnly: true, token: 'daemon' });
  const authorization = 'Bearer cloud-secret';

  it('admits any peer and Host with the cloud token', () => {
    const headers = { host: 'cloud.example', authorization };
    expect(code(own, { path: '/k8s/clusters', peer: '8.8.8.8', headers })).toBe('passes');
    expect(code(own, { path: '/k8s/clusters', peer: '8.8.8.8', headers: { host: 'cloud.example' } })).toBe(
      'unauthorized',
    );
    expect(code(own, { path: '/v1/services', headers: { authorization: 'Bearer daemon' } })).toBe(
      'unauthorized',
    );
  });

  it('still checks Origin and fetch site', () => {
    const host = 'cloud.example';
    const path = '/k8s/clusters';
    expect(code(own, { path, headers: { host, authorization, origin: 'http://cloud.example' } })).toBe(
      'forbidden_origin',
    );
    expect(code(own, { path, headers: { host, authorization, origin: EXTENSION } })).toBe('passes');
    expect(
      code(own, { method: 'POST', path, headers: { host, authorization, 'sec-fetch-site': 'cross-site' } }),
    ).toBe('forbidden_origin');
  });
});

it.each([
  ['/k8s', true],
  ['/k8s/', true],
  ['/k8s/clusters', true],
  ['/k8sx', false],
  ['/K8s/clusters', false],
  ['/%6b8s/clusters', false],
  ['//k8s/clusters', false],
  ['/v1/k8s', false],
])('%s belongs to the cloud: %s', (path, expected) => expect(isCloudPath(path)).toBe(expected));
