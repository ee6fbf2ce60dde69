// The project file: its meaning, and the problems reported for a wrong one.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onOtherPort } from '../../src/project/check_text.ts';
import { findProjectFile } from '../../src/project/find_project_file.ts';
import { ProjectError } from '../../src/project/project_error.ts';
import { projectSchema } from '../../src/project/project_shape.ts';
import { parseProject, readProject } from '../../src/project/read_project.ts';
import type { LiveField } from '../../src/protocol/checks.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-project-'));
  mkdirSync(join(folder, 'web', 'deep'), { recursive: true });
  writeFileSync(join(folder, '.env'), 'FROM_DOTENV=dotenv\nBOTH=dotenv\n');
  writeFileSync(join(folder, 'web', 'web.env'), 'A=file\nB="two words"\n# C=3\nLITERAL=${HOME}\n');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const parse = async (text: string, env: Record<string, string> = {}) =>
  (await parseProject(text, join(folder, 'berth.yaml'), env)).services;
const one = async (text: string, env: Record<string, string> = {}) => {
  const [service] = await parse(`services:\n  web:\n    cmd: run\n${text}`, env);
  if (!service) throw new Error('no service');
  return service;
};
const problems = async (text: string): Promise<string[]> => {
  try {
    await parse(text);
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return error.problems.map(({ at, message }) => `${at.line}:${at.column} ${message}`);
  }
  throw new Error('the file was accepted');
};

describe('a project file', () => {
  it('can have a service without a port, which then has no ready-check on it', async () => {
    expect((await one('    port: null\n    ready: http://localhost:8080/')).port).toBeNull();
    expect(await problems('services:\n  a:\n    cmd: run\n    port: null\n    ready: /up\n')).toEqual([
      "5:12 services.a.ready: probes the service's own port, but its port is null",
    ]);
  });

  it('can have every field', async () => {
    const [db, web] = await parse(`
services:
  db:
    cmd: postgres -p $PORT
    port: auto
    ready: tcp
  web:
    cmd: npm run dev
    cwd: web
    port: 3000
    ready: /health
    env: { MODE: dev, DEBUG: 1, ON: true, VERSION: 1.10, ZIP: 00420 }
    env_file: web/web.env
    depends_on: [db]
    group: site
    restart: on-failure
    autostart: true
    start_timeout: 1m30s
    sleep: { after: 90s }
    stop: { signal: SIGINT, grace: 10s }
    watch: { paths: [src], ignore: [dist/], debounce_ms: 1s, action: SIGHUP, cascade: true }
`);
    expect(db).toMatchObject({
      name: 'db',
      cwd: folder,
      port: 'auto',
      ready: { tcp: true },
      group: null,
      dependsOn: [],
    });
    expect(web).toEqual({
      name: 'web',
      at: { line: 7, column: 3 },
      cmd: 'npm run dev',
      cwd: join(folder, 'web'),
      port: 3000,
      ready: { http: '/health' },
      env: [
        ['A', 'file'],
        ['B', 'two words'],
        ['LITERAL', '${HOME}'],
        ['MODE', 'dev'],
        ['DEBUG', '1'],
        ['ON', 'true'],
        ['VERSION', '1.10'],
        ['ZIP', '00420'],
      ],
      dependsOn: ['db'],
      group: 'site',
      live: null,
      limits: null,
      stop: null,
      restart: 'on-failure',
      autostart: true,
      startTimeout: 90_000,
      sleep: { afterMinutes: 1.5 },
      stopSignal: 'SIGINT',
      stopGrace: 10_000,
      isPortFixed: false,
      stack: null,
      baseEnv: null,
      watch: { paths: ['src'], ignore: ['dist/'], debounceMs: 1_000, action: 'SIGHUP', cascade: true },
      kind: 'service',
      inputs: [],
      schedule: null,
      protocol: undefined,
    });
  });

  it('accepts env as a list, takes a name without a value from the shell, and prefers env to env_file', async () => {
    const text = '    env_file: [web/web.env]\n    env: [A=own, "URL=a=b", TOKEN, UNSET]';
    expect((await one(text, { TOKEN: 'shell' })).env).toEqual([
      ['A', 'own'],
      ['B', 'two words'],
      ['LITERAL', '${HOME}'],
      ['URL', 'a=b'],
      ['TOKEN', 'shell'],
    ]);
    expect((await one('    env: { TOKEN: , EMPTY: "" }', { TOKEN: 'shell' })).env).toEqual([
      ['TOKEN', 'shell'],
      ['EMPTY', ''],
    ]);
  });

  it('reads an env_file and a .env that begin with a byte order mark', async () => {
    const marked = join(folder, 'marked');
    mkdirSync(marked);
    writeFileSync(join(marked, '.env'), '\uFEFFFROM_DOTENV=dotenv\n');
    writeFileSync(join(marked, 'web.env'), '\uFEFFA=file\n');
    const text = 'services:\n  web: { cmd: "run ${FROM_DOTENV}", env_file: web.env }\n';
    const { services } = await parseProject(text, join(marked, 'berth.yaml'), {});
    expect(services).toMatchObject([{ cmd: 'run dotenv', env: [['A', 'file']] }]);
  });

  it('fills in the variables of an env_file from itself, earlier files, the shell and .env', async () => {
    const inner = join(folder, 'inner');
    mkdirSync(inner);
    writeFileSync(join(inner, '.env'), 'TAG=dotenv\nIMAGE=site:$TAG\nPW=pa#ss\n');
    writeFileSync(join(inner, 'a.env'), 'TAG=own\nA=$TAG-$IMAGE\nB=$PATH-$PW-$none\n');
    writeFileSync(join(inner, 'b.env'), 'C=$A\n');
    const text = 'services:\n  web: { cmd: "run ${IMAGE} ${PW}", env_file: [a.env, b.env] }\n';
    const shell = { TAG: 'shell', PATH: '/bin' };
    const [web] = (await parseProject(text, join(inner, 'berth.yaml'), shell)).services;
    // As in compose, the shell wins over .env.
    expect(web?.cmd).toBe('run site:shell pa#ss');
    expect(Object.fromEntries(web?.env ?? [])).toEqual({
      ...{ TAG: 'own', A: 'own-site:shell', B: '/bin-pa#ss-$none', C: 'own-site:shell' },
    });
  });

  it('names the line of a .env or an env_file that cannot be read', async () => {
    const broken = join(folder, 'broken');
    mkdirSync(broken);
    writeFileSync(join(broken, 'web.env'), 'A=1\nB="2\n');
    const text = 'services:\n  web: { cmd: run, env_file: web.env }\n';
    const file = join(broken, 'berth.yaml');
    const fault = 'line 2: the value has no closing quote';
    await expect(parseProject(text, file, {})).rejects.toThrow(`env_file: web.env: ${fault}`);
    writeFileSync(join(broken, '.env'), 'A=1\nB="2\n');
    await expect(parseProject(text, file, {})).rejects.toThrow(`.env:1:1: cannot be read: ${fault}`);
  });

  it('can have tasks, which have no port, and conditions in a list or a map', async () => {
    const [task, service, other] = await parse(`
services:
  migrate: { cmd: x, kind: task }
  web: { cmd: y, depends_on: { migrate: { condition: completed }, api: { condition: started } } }
  api: { cmd: z, depends_on: [migrate, { name: migrate, condition: ready }] }
`);
    expect(task).toMatchObject({ kind: 'task', port: null, ready: null });
    expect(service).toMatchObject({
      kind: 'service',
      inputs: [],
      schedule: null,
      protocol: undefined,
      port: 'auto',
      dependsOn: [
        { name: 'migrate', condition: 'completed' },
        { name: 'api', condition: 'started' },
      ],
    });
    expect(other?.dependsOn).toEqual(['migrate']);
  });

  it('is refused if a field does not suit the kind of service', async () => {
    const text = `services:
  task: { cmd: x, kind: task, ready: tcp, port: 80, restart: always }
  web: { cmd: x, depends_on: { db: { condition: completed } } }
  api: { cmd: x, depends_on: [db, { name: db, condition: started }] }
  db: { cmd: x }
`;
    expect((await problems(text)).map((line) => line.replace(/^\S+ /, ''))).toEqual([
      'services.task.ready: is not for a task, which is done when it ends',
      'services.task.restart: must not be always for a task, which runs to its end',
      'services.web.depends_on: db is no task, so it never completes',
      'services.api.depends_on: has two conditions for the same service',
    ]);
  });

  it('accepts depends_on as a map', async () => {
    const services = await parse(
      'services:\n  a: {cmd: x}\n  b: {cmd: y, depends_on: {a: {condition: ready}}}',
    );
    expect(services[1]?.dependsOn).toEqual(['a']);
  });

  it('has its variables substituted, and $NAME and $$ left to the shell', async () => {
    const env = { SET: 'yes', EMPTY: '', BOTH: 'shell', P: '4000', AUTO: 'true' };
    const text = [
      '    port: ${P}',
      '    autostart: ${AUTO}',
      '    env:',
      '      A: ${SET}-${UNSET:-default}-${EMPTY:-empty}-${EMPTY-kept}',
      '      B: ${UNSET:-${SET}}',
      '      C: $PORT $$PORT $${PORT} 5$',
      '      D: ${FROM_DOTENV} ${BOTH}',
      '      E: "${SET:+plus}${UNSET:+plus}"',
      '      F: ${P}',
    ].join('\n');
    const service = await one(text, env);
    expect([service.port, service.autostart]).toEqual([4000, true]);
    expect(Object.fromEntries(service.env)).toEqual({
      A: 'yes-default-empty-',
      B: 'yes',
      C: '$PORT $PORT ${PORT} 5$',
      D: 'dotenv shell',
      E: 'plus',
      F: '4000',
    });
  });

  it('can use anchors and merge keys, and keys of its own that start with x-', async () => {
    const services = await parse(`
x-base: &base { restart: always, env: { A: 1 } }
services:
  web: { <<: *base, cmd: x, x-note: mine }
  api: { cmd: y, <<: [*base, { restart: "no", group: g }] }
`);
    expect(services).toMatchObject([
      { restart: 'always', env: [['A', '1']] },
      { restart: 'always', group: 'g' },
    ]);
  });

  it('has ready-checks on its own port as objects, which do not name the port', async () => {
    const row = (name: string, ready: string) => `  ${name}: { cmd: x, ready: "${ready}" }\n`;
    const services = await parse(`services:\n${row('a', '/x')}${row('b', 'tcp')}${row('c', 'http://h/')}`);
    expect(services.map(({ ready }) => ready)).toEqual([{ http: '/x' }, { tcp: true }, 'http://h/']);
  });

  it('can say how a service is checked, restarted, limited and stopped, as a registration does', async () => {
    const text = `
services:
  a:
    cmd: x
    ready: { timeout: 1s, http: /ready, status: [200, 204], header: { X-Probe: berth }, body: ok$ }
    live: /live
    restart: { policy: always, min_ms: 50ms, max_ms: 2s, max: 3, within_ms: 2h }
    limits: { memory_mb: 64, cpus: 1.5, pids: 9 }
    stop: { command: ./quit, grace: 1s }
  b: { cmd: x, port: null, ready: { log: "^up" }, live: { exec: ./ping, interval: 10s, failures: 2 }, stop: ./quit }
  c: { cmd: x, ready: { notify: true }, live: tcp }`;
    const [a, b, c] = await parse(text);
    expect(a).toMatchObject({
      live: { http: '/live' },
      restart: { policy: 'always', minMs: 50, maxMs: 2_000, max: 3, withinMs: 7_200_000 },
      limits: { memoryMB: 64, cpus: 1.5, pids: 9 },
      stop: './quit',
      stopGrace: 1_000,
      stopSignal: undefined,
    });
    // In this order it is registered and read back, so that `up` sees no difference.
    expect(JSON.stringify(a?.ready)).toBe(
      '{"http":"/ready","status":[200,204],"header":{"X-Probe":"berth"},"body":"ok$","timeout":1000}',
    );
    expect(b).toMatchObject({
      ready: { log: '^up' },
      live: { exec: './ping', interval: 10_000, failures: 2 },
      stop: './quit',
    });
    expect(c).toMatchObject({ ready: { notify: true }, live: { tcp: true } });
  });

  it('has checks with a fixed port changed to the port of the stack', async () => {
    const moved = (check: LiveField): LiveField => onOtherPort(check, 80, 'web');
    expect(moved('http://localhost:80/x')).toBe('http://localhost:${port.web}/x');
    expect(moved({ http: 'http://127.0.0.1:80' })).toEqual({ http: 'http://127.0.0.1:${port.web}' });
    expect(moved({ tcp: 'localhost:80' })).toEqual({ tcp: 'localhost:${port.web}' });
    expect(moved({ tcp: 80 })).toEqual({ tcp: true });
    for (const same of [{ tcp: 8080 }, { tcp: 'localhost:800' }, { exec: 'x' }, 'tcp://db:80'])
      expect(moved(same)).toEqual(same);
  });

  it('is found in a parent folder', async () => {
    const file = join(folder, 'web', 'berth.yml');
    writeFileSync(file, 'services: {}\n');
    expect(findProjectFile(join(folder, 'web', 'deep')).found).toBe(file);
    expect(await readProject(file, {})).toEqual({
      file,
      name: null,
      environment: 'shell',
      services: [],
      hooks: [],
      isConverted: false,
    });
    rmSync(file);
  });
});

const ONE_CHECK =
  'must be an http://, https:// or tcp://host:port URL, a path such as /health, tcp, or a map with one of http, ' +
  'tcp, exec, log and notify';

describe('an invalid project file', () => {
  it.each([
    ['', ['1:1 must be a map with services']],
    ['- a', ['1:1 must be a map with services']],
    [
      'service: {}',
      [
        '1:1 services: is required: a map of names to services',
        '1:1 service: unknown key; did you mean services?',
      ],
    ],
    ['services:\n  web:', ['2:3 services.web: must be a map with cmd and what else the service needs']],
    [
      'services:\n  web:\n    port: 1',
      ['2:3 services.web.cmd: is required: the shell command that runs the service'],
    ],
    [
      'services:\n  web: {cmd: 3}',
      ['2:14 services.web.cmd: must be the shell command that runs the service'],
    ],
    [
      'services:\n  web:\n    cmd: x\n    prot: 3000',
      ['4:5 services.web.prot: unknown key; did you mean port?'],
    ],
    [
      'services:\n  web:\n    command: x\n    cmd: y',
      ['3:5 services.web.command: unknown key; here it is cmd'],
    ],
    [
      'services:\n  web: {cmd: x, stop: {grac: 3s}}',
      ['2:24 services.web.stop.grac: unknown key; did you mean grace?'],
    ],
    [
      'services:\n  Web: {cmd: x}',
      ['2:3 services.Web: must be a name of a-z, 0-9, _ and -, at most 63 characters, not beginning with -'],
    ],
    [
      'services:\n  web: {cmd: x, port: 70000}',
      ['2:23 services.web.port: must be a port from 1 to 65535, auto, { fixed: <port> }, or null for none'],
    ],
    [
      'services:\n  web: {cmd: x, port: "3000"}',
      ['2:23 services.web.port: must be a port from 1 to 65535, auto, { fixed: <port> }, or null for none'],
    ],
    [
      'services:\n  web: {cmd: x, start_timeout: 5 minutes}',
      [
        '2:32 services.web.start_timeout: must be a duration such as 30s or 500ms (a bare number is ' +
          'milliseconds)',
      ],
    ],
    ['services:\n  web: {cmd: x, stop: {grace: 2h}}', ['2:31 services.web.stop.grace: must be at most 1h']],
    ['services:\n  web: {cmd: x, ready: localhost:80}', [`2:24 services.web.ready: ${ONE_CHECK}`]],
    [
      'services:\n  web: {cmd: x, restart: never}',
      [
        '2:26 services.web.restart: must be no, on-failure or always, or a map with policy, min_ms, max_ms, max and within_ms',
      ],
    ],
    [
      'services:\n  web: {cmd: x, ready: {htp: /x, tcp: true}}',
      ['2:25 services.web.ready.htp: unknown key; did you mean http?'],
    ],
    [
      'services:\n  web: {cmd: x, ready: {tcp: true, exec: y}}',
      ['2:17 services.web.ready: must have one of http, tcp, exec, log, notify'],
    ],
    [
      'services:\n  web: {cmd: x, live: {exec: y, status: [200, 200]}}',
      ['2:17 services.web.live: must have status only with http'],
    ],
    [
      'services:\n  web: {cmd: x, ready: {exec: y, interval: soon}}',
      [
        '2:44 services.web.ready.interval: must be a duration such as 30s or 500ms (a bare number is milliseconds)',
      ],
    ],
    [
      'services:\n  web: {cmd: x, port: null, live: {tcp: true}}',
      ["2:29 services.web.live: probes the service's own port, but its port is null"],
    ],
    [
      'services:\n  web: {cmd: x, restart: {policy: no, within_ms: 1s}}',
      ['2:50 services.web.restart.within_ms: needs max'],
    ],
    [
      'services:\n  web: {cmd: x, limits: {}}',
      ['2:17 services.web.limits: must be a map with memory_mb, cpus or pids'],
    ],
    [
      'services:\n  web: {cmd: x, limits: {memoryMB: 5}}',
      [
        '2:17 services.web.limits: must be a map with memory_mb, cpus or pids',
        '2:26 services.web.limits.memoryMB: unknown key; here it is memory_mb',
      ],
    ],
    [
      'services:\n  web: {cmd: x, kind: task, restart: {policy: always}}',
      ['2:29 services.web.restart: must not be always for a task, which runs to its end'],
    ],
    [
      'services:\n  web: {cmd: x, group: Agents}',
      ['2:24 services.web.group: must not be Agents: that group is for agents'],
    ],
    [
      'services:\n  web: {cmd: x, env: {a-b: 1}}',
      ['2:23 services.web.env.a-b: must be a name of letters, digits and _'],
    ],
    ['services:\n  web: {cmd: x, env: {A: {}}}', ['2:23 services.web.env.A: must be a text']],
    ['services:\n  web: {cmd: x, env: [3=4]}', ['2:23 services.web.env: must be KEY=value, not "3=4"']],
    [
      'services:\n  web: {cmd: x, env: {BERTH_RUN: 1}}',
      ["2:34 services.web.env: BERTH_RUN: names that begin with BERTH_ are the daemon's"],
    ],
    [
      `services:\n  web: {cmd: "${'${A:-'.repeat(40)}${'}'.repeat(40)}"}`,
      ['2:14 services.web.cmd: more than 32 ${...} are nested'],
    ],
    [
      'services:\n  web: {cmd: x, env_file: none.env}',
      ['2:27 services.web.env_file: none.env does not exist'],
    ],
    [
      'services:\n  web: {cmd: x, env: {A: "\\uD83D", B: "\\uD83D\\uDE00", C: "a\\0"}}',
      [
        '2:26 services.web.env.A: must not contain an unpaired surrogate, half a character',
        '2:58 services.web.env.C: must not contain NUL',
      ],
    ],
    [
      'services:\n  web: {cmd: x, depends_on: [bd]}\n  db: {cmd: y}',
      ['2:17 services.web.depends_on: there is no service bd; did you mean db?'],
    ],
    [
      'services:\n  web:\n    cmd: x\n    env: {A: b, URL: "${url.ap}"}\n  api: {cmd: y, ready: {http: "${url.wep}/up"}}',
      [
        '4:22 services.web.env.URL: there is no service ap; did you mean api?',
        '5:31 services.api.ready.http: there is no service wep; did you mean web?',
      ],
    ],
    [
      'services:\n  a: {cmd: x, kind: task, sleep: {after: 5m}}\n  b: {cmd: x, port: null, sleep: {after: 5m}}',
      [
        '2:27 services.a.sleep: is not for a task, which runs to its end',
        '3:27 services.b.sleep: needs a port, as a connection to it wakes the service',
      ],
    ],
    ...(
      [
        ['ready: tcp://localhost', 'ready', ONE_CHECK],
        ['ready: /two words', 'ready', ONE_CHECK],
        ['ready: {tcp: localhost}', 'ready.tcp', 'must be host:port, a port, or true for its own port'],
        ['live: {tcp: "localhost:http"}', 'live.tcp', 'must be host:port, a port, or true for its own port'],
        [
          'live: {http: "http://"}',
          'live.http',
          'must be an http:// or https:// URL, or a path such as /health',
        ],
        [
          'live: {http: tcp://a:1}',
          'live.http',
          'must be an http:// or https:// URL, or a path such as /health',
        ],
        [
          'ready: {http: /, status: [399, 200]}',
          'ready.status',
          'must be the least and the greatest status, such as [200, 399]',
        ],
        [
          'ready: {http: /, header: {Upgrade: x}}',
          'ready.header.Upgrade',
          'must be the name of a header, and none of the connection itself',
        ],
        ['ready: {exec: "  "}', 'ready.exec', 'must be a shell command of at most 64 KiB'],
      ] as const
    ).map(([line, path, message]): [string, string[]] => [
      `services:\n  web:\n    cmd: x\n    ${line}`,
      [expect.stringContaining(` services.web.${path}: ${message}`)],
    ]),
    [
      'services:\n  web: {cmd: x, depends_on: {db: {condition: healthy}}}\n  db: {cmd: y}',
      [
        '2:46 services.web.depends_on.db.condition: must be started, ready (the default for services) or completed (the default for tasks)',
      ],
    ],
    [
      'services:\n  a: {cmd: x, depends_on: [b]}\n  b: {cmd: x, depends_on: [a]}',
      ['2:15 services.a.depends_on: has a cycle: a -> b -> a'],
    ],
    [
      'services:\n  a: {cmd: x, port: 3000}\n  b: {cmd: x, port: 3000}',
      ['3:21 services.b.port: 3000 is the port of a already'],
    ],
    [
      'services:\n  web: {cmd: "${NOPE}"}',
      [
        '2:14 services.web.cmd: ${NOPE} is not set: set it, write ${NOPE:-default}, or $NOPE to leave it ' +
          'to the shell',
      ],
    ],
    [
      'services:\n  web: {cmd: "${NOPE:?set NOPE first}"}',
      ['2:14 services.web.cmd: ${NOPE}: set NOPE first'],
    ],
    [
      'services:\n  web: {cmd: "${1X}"}',
      [
        '2:14 services.web.cmd: ${1X} is none of ${NAME}, ${NAME:-default} or ${NAME:?message}; write $${ ' +
          'for a literal ${',
      ],
    ],
    [
      'services:\n  web: {cmd: "${X"}',
      ['2:14 services.web.cmd: ${ without its }; write $${ for a literal ${'],
    ],
    ['services:\n  web: {cmd: x}\n  web: {cmd: y}', ['3:3 the key web is there twice']],
    ['services:\n  __proto__: {cmd: x}', ['2:3 the key __proto__ is not accepted']],
    ['services: *nothing', ['1:11 the anchor &nothing does not exist']],
    ['services:\n\tweb: x', ['2:1 Tabs are not allowed as indentation']],
    ['services: {}\n---\nservices: {}', ['2:1 the file must be one document']],
  ])('is reported: %j', async (text, expected) => {
    expect(await problems(text)).toEqual(expected);
  });

  it.each(['nowhere', '/dev/null/x', 'x'.repeat(300)])(
    'is reported at the place that names a missing folder: %s',
    async (cwd) => {
      expect(await problems(`services:\n  web: {cmd: x, cwd: ${cwd}}`)).toEqual([
        `2:22 services.web.cwd: there is no folder ${resolve(folder, cwd)}`,
      ]);
    },
  );

  it('is reported with all problems in order, each with its line', async () => {
    try {
      await parse('services:\n  web:\n    port: x\n    prot: 1\n    cmd: ${NOPE}\n');
    } catch (error) {
      expect((error as Error).message.split('\n')).toEqual([
        `${join(folder, 'berth.yaml')}:3:11: services.web.port: must be a port from 1 to 65535, auto, { fixed: <port> }, or null for none`,
        '  3 |     port: x',
        '    |           ^',
        `${join(folder, 'berth.yaml')}:4:5: services.web.prot: unknown key; did you mean port?`,
        '  4 |     prot: 1',
        '    |     ^',
        `${join(folder, 'berth.yaml')}:5:10: services.web.cmd: \${NOPE} is not set: set it, write \${NOPE:-default}, or $NOPE to leave it to the shell`,
        '  5 |     cmd: ${NOPE}',
        '    |          ^',
      ]);
      return;
    }
    throw new Error('the file was accepted');
  });

  it('is refused if its aliases grow without limit', async () => {
    const levels = Array.from({ length: 9 }, (_, at) =>
      at === 0
        ? 'x-0: &a0 [x]'
        : `x-${at}: &a${at} [${Array(9)
            .fill(`*a${at - 1}`)
            .join(', ')}]`,
    );
    expect((await problems(`${levels.join('\n')}\nservices: {}`))[0]).toContain(
      'too large once its aliases are followed',
    );
  });

  it('is reported with every invalid expression, as a registration is', async () => {
    const file = join(folder, 'patterns.yaml');
    writeFileSync(
      file,
      'services:\n  a:\n    cmd: x\n    ready: {log: "(x"}\n    live:\n      http: /\n      body: (?=y)\n' +
        '  b: {cmd: x, ready: {log: "^ok$"}}\n',
    );
    const error = await readProject(file, {}).catch((one: unknown) => one);
    if (!(error instanceof ProjectError)) throw error;
    expect(error.problems.map(({ at, message }) => `${at.line}:${at.column} ${message}`)).toEqual([
      expect.stringMatching(/^4:18 services\.a\.ready\.log: must be a regular expression of RE2: \S/),
      expect.stringMatching(/^7:13 services\.a\.live\.body: must be a regular expression of RE2: \S/),
    ]);
  });

  it('is reported if it is not UTF-8', async () => {
    const path = join(folder, 'latin1.yaml');
    writeFileSync(path, Buffer.from('services: {a: {cmd: "echo \xe9"}}', 'latin1'));
    await expect(readProject(path, {})).rejects.toThrow('cannot be read: it is not UTF-8');
  });

  it('is reported if it does not exist', async () => {
    const path = join(folder, 'nothing.yaml');
    await expect(readProject(path, {})).rejects.toThrow(`${path}:1:1: there is no such file`);
  });
});

it('the published schema names every key and refuses others', async () => {
  expect(projectSchema()).toMatchObject({
    $schema: 'http://json-schema.org/draft-07/schema#',
    required: ['services'],
    additionalProperties: false,
    properties: {
      services: {
        additionalProperties: {
          required: ['cmd'],
          additionalProperties: false,
          patternProperties: { '^x-': {} },
          properties: {
            port: {
              anyOf: [
                { minimum: 1, maximum: 65535 },
                { const: 'auto' },
                { type: 'null' },
                { required: ['fixed'] },
              ],
            },
          },
        },
      },
    },
  });
});
