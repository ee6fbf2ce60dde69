// Completions on Tab, alone and in the real shells.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { completionsOf } from '../../../src/cli/commands/complete.ts';
import { COMMAND_TABLE } from '../../../src/cli/commands.ts';
import { freePort } from '../../kit/free_ports.ts';
import { json, serve } from '../../kit/recording_server.ts';
import { binFolder, cleanEnv, folder, stateOf } from '../berth_process.ts';

const SERVICES = [
  { name: 'web', port: 1, group: 'site', status: 'running', url: 'http://localhost:1', pid: 9, restarts: 0 },
  { name: 'worker', port: null, group: null, status: 'stopped', url: null, restarts: 0 },
  { name: 'db', port: 3, group: null, status: 'crashed', url: 'http://localhost:3', restarts: 0 },
];
const fake = () =>
  serve((asked, response) => {
    if (asked.path === '/v1/groups')
      json(response, 200, { groups: [{ name: 'site', services: 1, running: 1 }] });
    else if (asked.path === '/v1/stacks') json(response, 200, { stacks: [] });
    else json(response, 200, { services: SERVICES });
  });

const described = (line: string, state: string) => {
  const globals = { format: 'table', url: undefined, stateDir: state, config: undefined } as const;
  return completionsOf(COMMAND_TABLE, line.split(' ').slice(1), globals);
};
const offered = async (line: string, state: string): Promise<string[]> =>
  (await described(line, state)).map(([word]) => word);

describe('shell completion', () => {
  it('offers commands, families once, and the commands of a family', async () => {
    const state = folder();
    expect(await offered('berth st', state)).toEqual(['stacks', 'status', 'start', 'stop']);
    const all = await offered('berth ', state);
    expect(all.filter((word) => word === 'daemon')).toHaveLength(1);
    expect(all).not.toContain('__complete');
    expect(await offered('berth k8s s', state)).toEqual(['sync', 'sleep', 'savings']);
    expect(await offered('berth daemon ', state)).toEqual([
      'start',
      'stop',
      'status',
      'restart',
      'logs',
      'install',
      'uninstall',
    ]);
  });

  it('offers matching names: services to start, services to stop, and none twice', async () => {
    const state = stateOf((await fake()).port);
    expect(await offered('berth start ', state)).toEqual(['worker', 'db']);
    expect(await described('berth start ', state)).toEqual([
      ['worker', 'stopped'],
      ['db', 'crashed http://localhost:3'],
    ]);
    expect(await offered('berth stop ', state)).toEqual(['web']);
    expect(await offered('berth logs w', state)).toEqual(['web', 'worker']);
    expect(await offered('berth logs web w', state)).toEqual(['worker']);
    expect(await offered('berth -o json url d', state)).toEqual(['db']);
    expect(await offered('berth group start ', state)).toEqual(['site']);
    expect(await offered('berth url web ', state)).toEqual([]);
  });

  it('offers the services of the stack, of another with --stack, and all with -A', async () => {
    const service = (stack: string, name: string) => ({
      ...SERVICES[0],
      name: `${stack}--${name}`,
      stack,
      service: name,
    });
    const { port } = await serve((asked, response) => {
      const stack = (name: string, path: string) => ({ name, project: name, path, named: false });
      const stacks = [stack('shop', process.cwd()), stack('blog', '/nowhere')];
      if (asked.path === '/v1/stacks') json(response, 200, { stacks });
      else json(response, 200, { services: [service('shop', 'web'), service('blog', 'db')] });
    });
    const state = stateOf(port);
    expect(await offered('berth logs ', state)).toEqual(['web']);
    expect(await offered('berth logs --stack blog ', state)).toEqual(['db']);
    expect(await offered('berth logs -A ', state)).toEqual(['shop--web', 'blog--db']);
  });

  it('offers options, and values of options', async () => {
    const state = stateOf((await fake()).port);
    expect(await offered('berth start --t', state)).toEqual(['--timeout']);
    expect(await offered('berth ps --status c', state)).toEqual(['crashed', 'completed']);
    expect(await offered('berth start --group ', state)).toEqual(['site']);
    expect(await offered('berth ps -o j', state)).toEqual(['json', 'jsonl']);
    expect(await offered('berth start --timeout ', state)).toEqual([]);
    expect(await offered('berth up -f ', state)).toEqual([':file']);
    expect(await offered('berth completion ', state)).toEqual(['bash', 'zsh', 'fish']);
  });

  it('offers the services of the project file without a daemon, and files', async ({ onTestFinished }) => {
    const state = folder();
    const place = folder();
    const here = process.cwd();
    onTestFinished(() => process.chdir(here));
    process.chdir(place);
    expect(await offered('berth up ', state)).toEqual([]);
    const write = (file: string, text: string) => writeFileSync(join(place, file), text);
    write('Procfile', 'site: sleep 1\nmail: sleep 1\n');
    expect(await offered('berth up ', state)).toEqual(['site', 'mail']);
    write('berth.yaml', 'services: {web: {cmd: sleep 1}, worker: {cmd: sleep 1}, db: {cmd: sleep 1}}');
    write('other.yaml', 'services: {other: {cmd: sleep 1}}');
    write('broken.yaml', 'services: {broken: {}}');
    expect(await offered('berth up w', state)).toEqual(['web', 'worker']);
    expect(await offered('berth up --no-wait web ', state)).toEqual(['worker', 'db']);
    expect(await offered('berth up -f other.yaml ', state)).toEqual(['other']);
    expect(await offered('berth up --file broken.yaml ', state)).toEqual([]);
    expect(await offered('berth up -f ', state)).toEqual([':file']);
  });

  it('offers no names, and no error, without a daemon', async () => {
    expect(await offered('berth start ', folder())).toEqual([]);
    expect(await offered('berth start ', stateOf(freePort()))).toEqual([]);
  });

  it('can describe every command', async () => {
    for (const row of COMMAND_TABLE.rows) {
      const command = await row.load();
      expect([row.name, typeof command.run]).toEqual([row.name, 'function']);
    }
  });
});

describe.each([
  [
    'bash',
    ['--norc', '-c'],
    'source <(berth completion bash); COMP_WORDS=(berth "$@"); COMP_CWORD=$#; _berth; printf "%s\\n" "${COMPREPLY[@]}"',
  ],
  [
    'zsh',
    ['-f', '-c'],
    'compdef() { :; }; _describe() { print -l -- "${values[@]%%:*}"; }; source <(berth completion zsh); ' +
      'words=(berth "$@"); CURRENT=$#words; _berth',
  ],
  [
    'fish',
    ['--no-config', '-c'],
    'berth completion fish | source; complete -C "berth $argv[2..-1]" | string split -f1 \\t',
  ],
] as const)('the completion of %s', (shell, flags, script) => {
  it('offers the names of services', async ({ skip }) => {
    if (spawnSync(shell, ['--version']).error) skip(`${shell} is not installed`);
    const { port } = await fake();
    const env = cleanEnv(folder(), { BERTH_STATE_DIR: stateOf(port) });
    env['PATH'] = `${binFolder()}:${process.env['PATH']}`;
    const { spawn } = await import('node:child_process');
    const tab = (...words: string[]): Promise<string[]> =>
      new Promise((resolve) => {
        const child = spawn(shell, [...flags, script, shell, ...words], {
          env,
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        let text = '';
        child.stdout.on('data', (part) => {
          text += part;
        });
        child.on('close', () =>
          resolve(
            text
              .split('\n')
              .filter((line) => line !== '')
              .sort(),
          ),
        );
      });
    expect(await tab('logs', 'w')).toEqual(['web', 'worker']);
    expect(await tab('rest')).toEqual(['restart']);
    expect(await tab('group', 'start', 's')).toEqual(['site']);
  });
});
