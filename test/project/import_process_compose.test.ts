// The import of process-compose files: what it writes runs as process-compose would run it.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { stringifyProject } from '../../src/project/imported_project.ts';
import { importProject } from '../../src/project/importers.ts';
import { parseProject } from '../../src/project/read_project.ts';
import { must } from '../kit/must.ts';
import { folder, put } from './import_folder.ts';

const WITH_BASH = { env: { PATH: '/usr/bin:/bin' }, encoding: 'utf8' } as const;

/** What is written for the file `text`, and the services of that. */
async function through(text: string, shell: Record<string, string> = {}) {
  const { services: written, notes } = must(await importProject(put('process-compose.yaml', text)));
  const project = stringifyProject(written, []);
  const { services } = await parseProject(project, join(folder, 'berth.yaml'), shell);
  return { written, services, notes };
}

/** What is written for a process with `command` in a file with the lines `more`. */
async function written(command: string, more = ''): Promise<string | undefined> {
  const { written: all } = await through(
    `${more}\nprocesses: { a: { command: ${JSON.stringify(command)} } }`,
  );
  return all[0]?.cmd;
}

describe('a command of process-compose', () => {
  it.each([
    './api --port 4000',
    'postgres -D data',
    'exec node server.mjs',
    'PORT=3000 DEBUG=a,b NODE_ENV= npm run dev',
    `python3 -c "print('a; b')" 'c && $d'`,
    './api "${HOST}:${PORT}"',
  ])('that only runs a program is written as it is: %s', async (command) => {
    const shell = { HOST: 'localhost', PORT: '1' };
    for (const [name, value] of Object.entries(shell)) vi.stubEnv(name, value);
    const text = `processes: { a: { command: ${JSON.stringify(command)} } }`;
    expect((await through(text, shell)).written[0]?.cmd).toBe(command);
  });

  it.each([
    ['source ./env.sh', "exec bash -c 'source ./env.sh'"],
    ['echo -e a', "exec bash -c 'echo -e a'"],
    ['exec -a web node .', "exec bash -c 'exec -a web node .'"],
    ['A= echo -e a', "exec bash -c 'A= echo -e a'"],
    ['cd api && ./run', "exec bash -c 'cd api && ./run'"],
    ["[[ a == 'a' ]]", "exec bash -c '[[ a == '\\''a'\\'' ]]'"],
    ['./api --user $UID', "exec bash -c './api --user $UID'"],
    ['./api {a,b}', "exec bash -c './api {a,b}'"],
    ['./api "$(date)"', 'exec bash -c \'./api "$(date)"\''],
    ['./a\n./b', "exec bash -c './a\n./b'"],
  ])('is run by bash otherwise: %j', async (command, cmd) => {
    expect(await written(command)).toBe(cmd);
  });

  it('prints in /bin/sh what bash prints', async () => {
    put('f.sh', 'SRC=sourced');
    const command = `source ./f.sh; [[ $SRC == s* ]] && echo "it's $SRC" $$((2 ** 3)) {a,b}`;
    const { services } = await through(`processes: { a: { command: ${JSON.stringify(command)} } }`);
    const printed = execFileSync('/bin/sh', ['-c', must(services[0]).cmd], { cwd: folder, ...WITH_BASH });
    expect(printed).toBe("it's sourced 8 a b\n");
  });

  it('is run by the shell of the file, or of COMPOSE_SHELL', async () => {
    const shell = (program: string, option: string) =>
      `shell: { shell_command: ${program}, shell_argument: ${option} }`;
    expect(await written('[[ a ]]', shell('sh', '-c'))).toBe('[[ a ]]');
    expect(await written('[[ a ]]', shell('/bin/sh', '-ec'))).toBe("exec /bin/sh -ec '[[ a ]]'");
    expect(await written('./a', shell('zsh', '-c'))).toBe('./a');
    expect(await written('./a; b', shell('zsh', '-c'))).toBe("exec zsh -c './a; b'");
    expect(await written('http.server', shell('python3', '-m'))).toBe('exec python3 -m http.server');
    vi.stubEnv('COMPOSE_SHELL', 'zsh');
    expect(await written('echo a')).toBe("exec zsh -c 'echo a'");
  });

  it('has bash for the commands of probes and stops too, and keeps its port and protocol', async () => {
    const text = `
processes:
  db:
    command: "cd data; redis-server --port 7000"
    readiness_probe: { exec: { command: "[[ -e up ]]" } }
    liveness_probe: { exec: { command: ./check } }
    shutdown: { command: "source ./stop" }
`;
    const { written: all } = await through(text);
    expect(all).toMatchObject([
      {
        cmd: "exec bash -c 'cd data; redis-server --port 7000'",
        port: 7000,
        protocol: 'tcp',
        ready: { exec: "exec bash -c '[[ -e up ]]'" },
        live: { exec: './check' },
        stop: { command: "exec bash -c 'source ./stop'" },
      },
    ]);
  });
});

describe('an entrypoint of process-compose', () => {
  it('is a program without a shell, unless there is a command', async () => {
    const text = `
processes:
  a: { entrypoint: [printf, "%s,", "it's", "$X;", "", "b c"] }
  b: { command: ./b, entrypoint: [./c] }
  c: { command: ./c, depends_on: { a: { condition: process_completed_successfully } } }
`;
    const { written: all, services, notes } = await through(text);
    expect(all.map(({ name, cmd, kind, depends_on }) => [name, cmd, kind, depends_on])).toEqual([
      ['a', "exec printf %s, 'it'\\''s' '$X;' '' 'b c'", 'task', undefined],
      ['b', './b', undefined, undefined],
      ['c', './c', undefined, ['a']],
    ]);
    expect(execFileSync('/bin/sh', ['-c', must(services[0]).cmd], WITH_BASH)).toBe("it's,$X;,,b c,");
    expect(notes).toEqual(['b: entrypoint is left out, as it has a command']);
  });

  it('or a command is needed: others do not wait for a process without one', async () => {
    const text = `
processes:
  a: { entrypoint: [] }
  b: { disabled: true, command: ./b }
  c: { command: ./c, depends_on: { a: {}, b: { condition: process_started } } }
`;
    const { services, notes } = await through(text);
    expect(services).toMatchObject([{ name: 'c', dependsOn: [] }]);
    expect(notes).toEqual([
      'a has no command: left out',
      'b is disabled: left out',
      'c: there is no process a to wait for',
      'c: waits for a to succeed; process_completed would take a failure too',
      'c: there is no process b to wait for',
    ]);
  });
});

describe('a variable in a process-compose file', () => {
  it('is substituted without braces too if it is set, outside of commands', async () => {
    vi.stubEnv('PLACE', folder);
    vi.stubEnv('NOT_SET', undefined);
    put('.env', 'WP=4000\n');
    const text = `
environment: ["D=$PLACE", "E=\${PLACE}", "PW=pa$NOT_SET$$PLACE$1"]
processes:
  a:
    command: echo "$PLACE"
    working_dir: $PLACE
    environment: [L=$WP/x]
    readiness_probe: { http_get: { port: $WP, path: /$PLACE-$NOT_SET } }
`;
    const { written: all, services } = await through(text, { PLACE: folder });
    expect(all[0]?.cmd).toBe('exec bash -c \'echo "$PLACE"\'');
    expect(services).toMatchObject([
      { cwd: folder, port: 4000, ready: `http://localhost:4000/${folder}-$NOT_SET` },
    ]);
    const { env_file: _, ...env } = Object.fromEntries(must(services[0]).env);
    expect(env).toMatchObject({ D: folder, E: folder, PW: 'pa$NOT_SET$PLACE$1', L: '4000/x' });
  });

  it('is left to the shell in a command if it is not set, and is empty elsewhere', async () => {
    for (const name of ['OWN', 'WORD', 'NOT_SET']) vi.stubEnv(name, undefined);
    vi.stubEnv('SET', 'set');
    const command =
      'for WORD in "${SET}" "${OWN}" "${NOT_SET:-${SET}${OWN}}" "${OWN#o}"; do echo "${WORD}"; done';
    const text = `
processes:
  a: { command: ${JSON.stringify(command)}, environment: [OWN=own, "B=[\${NOT_SET}\${SET}\${NOT_SET:-\${SET}}\${SET^}]"] }
`;
    const { services, notes } = await through(text, { SET: 'set' });
    const { cmd, env } = must(services[0]);
    const printed = execFileSync('/bin/sh', ['-c', cmd], {
      ...WITH_BASH,
      env: { ...WITH_BASH.env, ...Object.fromEntries(env) },
    });
    expect(printed).toBe('set\nown\nsetown\nwn\n');
    expect(Object.fromEntries(env)).toMatchObject({ B: '[setset${SET^}]' });
    expect(notes).toEqual(['not set, and therefore empty: ${NOT_SET}']);
  });

  it.each(['${WP}', '${WP:-1}', '$WP'])('can be the port of a probe: %s', async (port) => {
    put('.env', 'WP=4000\n');
    const probe = `{ http_get: { host: 127.0.0.1, port: "${port}" }, period_seconds: 1 }`;
    const { services } = await through(`processes: { a: { command: ./a, readiness_probe: ${probe} } }`);
    expect(services).toMatchObject([{ port: 4000, ready: { http: 'http://127.0.0.1:4000/' } }]);
  });
});

describe('a number or a flag of process-compose', () => {
  const FIELDS = `
processes:
  off: { command: ./off, disabled: "\${OFF}" }
  off-2: { command: ./off, is_disabled: "$OFF" }
  rep: { command: ./rep, replicas: "\${N}" }
  back:
    command: ./back
    namespace: \${NS}
    ready_log_line: listening on \${W}
    availability: { restart: "\${RESTART:-on_failure}", backoff_seconds: "\${W}", max_restarts: "\${N}" }
    liveness_probe: { exec: { command: ./check }, period_seconds: "\${W}", failure_threshold: "\${N}" }
    shutdown: { signal: "\${N}", timeout_seconds: "\${W}" }
`;

  it('may be a variable of the shell or of .env', async () => {
    vi.stubEnv('NS', 'backend');
    put('.env', 'OFF=true\nN=3\nW=7\n');
    const { services, notes } = await through(FIELDS);
    expect(services.map(({ name }) => name)).toEqual(['rep', 'rep-2', 'rep-3', 'back']);
    expect(services[3]).toMatchObject({
      group: 'backend',
      ready: { log: 'listening on 7' },
      restart: { policy: 'on-failure', minMs: 7_000, max: 3 },
      live: { interval: 7_000, failures: 3 },
      stopSignal: 'SIGQUIT',
      stopGrace: 7_000,
    });
    expect(notes).toEqual(['off is disabled: left out', 'off-2 is disabled: left out']);
  });

  it('is left out with a warning if it is none', async () => {
    put('.env', 'OFF=perhaps\nN=-1\n');
    const { services, notes } = await through(FIELDS);
    expect(services.map(({ name }) => name)).toEqual(['off', 'off-2', 'rep', 'back']);
    expect(services[3]).toMatchObject({ group: null, restart: 'on-failure' });
    expect(notes).toEqual([
      'not set, and therefore empty: ${NS}, ${W}',
      'off: disabled is left out',
      'off-2: is_disabled is left out',
      'rep: replicas is left out',
      'back: availability.backoff_seconds, availability.max_restarts, liveness_probe.period_seconds, liveness_probe.failure_threshold, shutdown.timeout_seconds are left out',
      'back: there is no signal -1: shutdown.signal is left out',
    ]);
  });

  it.each(['True', 'yes', 'on'])('may be %s', async (flag) => {
    expect((await through(`processes: { a: { command: ./a, disabled: ${flag} } }`)).services).toEqual([]);
  });

  it('is at most what a project file can have, and 0 is the default', async () => {
    const text = `
processes:
  a:
    command: ./a
    availability: { restart: always, backoff_seconds: 9999 }
    liveness_probe: { exec: { command: ./check }, period_seconds: 0, failure_threshold: 0 }
    shutdown: { timeout_seconds: 9999 }
`;
    const { services } = await through(text);
    expect(services).toMatchObject([
      { restart: { minMs: 3_600_000 }, live: { interval: 10_000 }, stopGrace: 3_600_000 },
    ]);
  });

  it('may be a variable in a file that expands none', async () => {
    vi.stubEnv('N', '3');
    const text = `
disable_env_expansion: true
processes:
  a: { command: 'echo "\${N} $N $$N"', replicas: "\${N}", environment: ["A=\${N}$$"] }
`;
    const { services, notes } = await through(text, { N: '3' });
    expect(services.map(({ name, env }) => [name, env])).toEqual([['a', [['A', '${N}$$']]]]);
    expect(must(services[0]).cmd).toContain('"${N} $N $$N"');
    expect(notes).toEqual(['a: replicas is left out']);
  });
});

describe('the replicas of a process', () => {
  it.each([
    ['of the process', '', '[PORT=4178, A=1]'],
    ['of all processes', 'environment: [PORT=4178]', '[A=1]'],
  ])('have a free port each in place of PORT in the environment %s', async (_, shared, own) => {
    const text = `
${shared}
processes:
  api:
    command: ./api
    environment: ${own}
    replicas: 2
    readiness_probe: { http_get: { host: 127.0.0.1, port: 4178, path: /up } }
    liveness_probe: { http_get: { host: elsewhere, port: 4178 } }
`;
    const { services, notes } = await through(text);
    expect(services.map(({ name, port, env }) => [name, port, Object.fromEntries(env)])).toEqual([
      ['api', 'auto', { A: '1', PC_REPLICA_NUM: '0' }],
      ['api-2', 'auto', { A: '1', PC_REPLICA_NUM: '1' }],
    ]);
    expect(services[1]).toMatchObject({ ready: { http: '/up' }, live: { http: 'http://elsewhere:4178/' } });
    expect(notes).toEqual(['api: its replicas cannot share port 4178; each has a free one in $PORT']);
  });

  it('have those that their number gives, in a command for the shell', async () => {
    const text = `
processes:
  web: { command: "./web $PC_PROC_NAME --port 400\${PC_REPLICA_NUM}", replicas: 2 }
  one: { command: "./one --port 500$PC_REPLICA_NUM" }
`;
    const { services, notes } = await through(text);
    expect(services.map(({ name, port, env }) => [name, port, Object.fromEntries(env)])).toEqual([
      ['web', 4000, { PC_PROC_NAME: 'web', PC_REPLICA_NUM: '0' }],
      ['web-2', 4001, { PC_PROC_NAME: 'web', PC_REPLICA_NUM: '1' }],
      ['one', 5000, { PC_REPLICA_NUM: '0' }],
    ]);
    expect(must(services[1]).cmd).toBe("exec bash -c './web $PC_PROC_NAME --port 400${PC_REPLICA_NUM}'");
    expect(notes).toEqual([]);
  });
});

describe('a template of process-compose', () => {
  const WEB = `
vars: { P: 4000, DIR: "\${PLACE}", WHO: all, YES: true }
processes:
  web:
    vars: { WHO: web }
    command: "./web --port {{.P}} {{ .WHO }} {{.YES}} {{ \\"{{.Raw}}\\" }}"
    working_dir: "{{.DIR}}"
    environment: ["WHO={{.WHO}}"]
    readiness_probe: { http_get: { host: 127.0.0.1, port: "{{.P}}", path: "/{{.WHO}}" } }
    liveness_probe: { exec: { command: "./check {{.P}}" } }
`;

  it('is filled in by the variables of the file and the process', async () => {
    vi.stubEnv('PLACE', folder);
    const { services, notes } = await through(WEB, { PLACE: folder });
    expect(services).toMatchObject([
      {
        cmd: "exec bash -c './web --port 4000 web true {{.Raw}}'",
        cwd: folder,
        port: 4000,
        env: [['WHO', 'web']],
        ready: 'http://127.0.0.1:4000/web',
        live: { exec: './check 4000' },
      },
    ]);
    expect(notes).toEqual([]);
  });

  it('can give each replica its port', async () => {
    const text = `
processes:
  a:
    command: "./a --port 404{{.PC_REPLICA_NUM}}"
    replicas: 2
    readiness_probe: { http_get: { host: 127.0.0.1, port: "404{{.PC_REPLICA_NUM}}" } }
  b: { command: ./b, replicas: 2, environment: ["PORT=405{{.PC_REPLICA_NUM}}"] }
`;
    const { services, notes } = await through(text);
    expect(services).toMatchObject([
      { cmd: './a --port 4040', port: 4040, ready: 'http://127.0.0.1:4040/' },
      { cmd: './a --port 4041', port: 4041, ready: 'http://127.0.0.1:4041/' },
      { name: 'b', port: 4050 },
      { name: 'b-2', port: 4051 },
    ]);
    expect(notes).toEqual([]);
  });

  it('of another kind is named, and is not part of a port or host', async () => {
    const text = `
processes:
  a:
    command: "docker inspect -f '{{.State}} {{if .X}}'"
    environment: ["PORT={{.P}}"]
    readiness_probe: { http_get: { host: "{{.H}}", port: "404{{.P}}" } }
    liveness_probe: { http_get: { host: "{{.H}}", port: "\${NOT_SET}", scheme: "{{.H}}" } }
  plain: { command: "echo {{.P}}", is_template_disabled: true }
`;
    const { services, notes } = await through(text);
    expect(services).toMatchObject([
      { cmd: "docker inspect -f '{{.State}} {{if .X}}'", port: null, ready: null, live: null },
      { cmd: "exec bash -c 'echo {{.P}}'" },
    ]);
    expect(notes).toEqual([
      'not set, and therefore empty: ${NOT_SET}',
      'a: only process-compose can fill in {{.State}}, {{if .X}}, {{.P}}, {{.H}}',
      'a: readiness_probe.http_get.host, readiness_probe.http_get.port, liveness_probe.http_get.host, liveness_probe.http_get.port, liveness_probe.http_get.scheme are left out',
    ]);
  });
});

describe('a process of process-compose with a schedule', () => {
  it('is a task with that schedule', async () => {
    const schedules = {
      cron: '{ cron: "0 2 * * *" }',
      zone: '{ cron: "0 2 * * *", interval: 5m, timezone: Europe/Berlin, run_on_start: true, max_concurrent: 1 }',
      nick: '{ cron: "@daily", run_on_start: true }',
      every: '{ interval: 1h30m, run_on_start: true }',
      fraction: '{ interval: 1.5h, run_on_start: "${YES}" }',
    };
    put('.env', 'YES=true\n');
    const rows = Object.entries(schedules).map(
      ([name, schedule]) => `  ${name}: { command: date, schedule: ${schedule}, replicas: 2 }\n`,
    );
    const { services, notes } = await through(`processes:\n${rows.join('')}`);
    expect(services.map(({ name, kind, port, schedule }) => [name, kind, port, schedule])).toEqual([
      ['cron', 'task', null, { cron: '0 2 * * *', timezone: null, catchUp: false }],
      ['zone', 'task', null, { cron: '0 2 * * *', timezone: 'Europe/Berlin', catchUp: false }],
      ['nick', 'task', null, { cron: '@daily', timezone: null, catchUp: false }],
      ['every', 'task', null, { cron: '@every 1h30m', timezone: null, catchUp: false }],
      ['fraction', 'task', null, { cron: '@every 5400000ms', timezone: null, catchUp: false }],
    ]);
    expect(notes).toEqual(['cron: `berth up` runs it once too; process-compose waits for its schedule']);
  });

  it('names what a task cannot have, and what is no schedule', async () => {
    const text = `
processes:
  a:
    command: ./a
    schedule: { cron: often, timezone: Moon, max_concurrent: 3, run_on_start: true }
    availability: { restart: always }
    ready_log_line: done
  b: { command: ./b, schedule: { interval: 10, run_on_start: true } }
  c: { command: ./c, schedule: { interval: 10ms, run_on_start: true } }
`;
    const { services, notes } = await through(text);
    expect(services).toMatchObject(['a', 'b', 'c'].map((name) => ({ name, kind: 'task', schedule: null })));
    expect(notes).toEqual([
      'a: schedule.cron, schedule.timezone, schedule.max_concurrent are left out',
      'a: ready_log_line is left out, as it has a schedule',
      'a: restart always is left out, as it has a schedule',
      'b: schedule.interval is left out',
      'c: schedule.interval is left out',
    ]);
  });
});

it('the namespace of a process is a valid group', async () => {
  const text = `
processes:
  a: { command: ./a, namespace: back end }
  b: { command: ./b, namespace: back_end- }
  c: { command: ./c, namespace: Agents }
  d: { command: ./d, namespace: [one, two] }
  e: { command: ./e, namespace: 漢 }
  f: { command: ./f, namespace: default }
`;
  const { services, notes } = await through(text);
  expect(services.map(({ group }) => group)).toEqual([
    'back-end',
    'back_end-',
    'agents',
    'one',
    'group',
    null,
  ]);
  expect(notes).toEqual([
    'a: its group is back-end, for the namespace back end',
    'c: its group is agents, for the namespace Agents',
    'd: a service has one group: namespace two is left out',
    'e: its group is group, for the namespace 漢',
  ]);
});

it('the published port of a compose file may be a variable without braces', async () => {
  vi.stubEnv('PATH', folder);
  put('.env', 'WP=4000\n');
  const text =
    'services: { a: { image: x, ports: ["$WP:80"] }, b: { image: x, ports: ["127.0.0.1:${XP:-1}:80"] } }';
  const { services: all } = must(await importProject(put('compose.yaml', text)));
  expect(all.map(({ port }) => port)).toEqual(['${WP}', '${XP:-1}']);
  const { services } = await parseProject(stringifyProject(all, []), join(folder, 'berth.yaml'), {});
  expect(services.map(({ port }) => port)).toEqual([4000, 1]);
});
