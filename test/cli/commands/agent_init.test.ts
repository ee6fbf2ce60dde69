// docs/reference.md "Agent init": what is written, and that exactly that is taken back.
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import pty from 'node-pty';
import { describe, expect, it } from 'vitest';
import { removeJsonc } from '../../../src/adapters/jsonc.ts';
import { SETUP_PROGRAMS, setupPlan } from '../../../src/cli/kit/agent_setup.ts';
import { withEdit, withoutEdit } from '../../../src/cli/kit/file_edits.ts';
import { BIN } from '../../kit/built_program.ts';
import { eventually } from '../../kit/daemon.ts';
import { berth, cleanEnv, daemonOf, folder, type Ran } from '../berth_process.ts';

/** Files with what people have in them: comments, other servers, other hooks, odd endings. */
const OWN: Readonly<Record<string, string>> = {
  '.mcp.json': '{\n  // mine\n  "mcpServers": {}\n}\n',
  '.gemini/settings.json':
    '{\n\t"hooks": { "AfterAgent": [{ "hooks": [{ "type": "command", "command": "true" }] }] },\n}',
  '.codex/config.toml': '# mine\nmodel = "x"',
  'opencode.jsonc': '{\r\n  "mcp": { "other": { "type": "local", "command": ["x"] } } // last\r\n}\r\n',
  'AGENTS.md': '# Rules\n\nBe kind.\n',
};

/** What of them is still there afterwards. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  '.mcp.json': ['// mine'],
  '.gemini/settings.json': ['"command": "true"'],
  '.codex/config.toml': ['# mine\nmodel = "x"'],
  'opencode.jsonc': ['"other": {', '// last'],
  'AGENTS.md': ['# Rules\n\nBe kind.\n'],
};

function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

/** Every file below `root`, and every folder as `null`. */
const tree = (root: string): Record<string, string | null> =>
  Object.fromEntries(
    readdirSync(root, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((path) => [
        path,
        statSync(join(root, path)).isDirectory() ? null : readFileSync(join(root, path), 'utf8'),
      ]),
  );

interface Project {
  root: string;
  state: string;
  env: Record<string, string>;
  init(...args: string[]): Promise<Ran>;
}

function project(files: Readonly<Record<string, string>> = {}, state = folder()): Project {
  const root = folder();
  write(root, files);
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: state });
  return { root, state, env, init: (...args) => berth(['agent', 'init', ...args], { cwd: root, env }) };
}

/** `café`, as an editor of another time has written it. */
const LATIN1 = Buffer.from('caf\xe9\n', 'latin1');

const ALL = SETUP_PROGRAMS.map((name) => `--${name}`);

describe('berth agent init', () => {
  it('keeps existing content, writes once, and removes exactly what it wrote', async () => {
    const { root, init } = project(OWN);
    const before = tree(root);
    const first = await init(...ALL, '--yes');
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('will use Berth') });
    expect(first.stderr).toContain('+     "berth": {');
    const after = tree(root);
    for (const [path, words] of Object.entries(KEPT))
      for (const word of words) expect(after[path], path).toContain(word);
    expect(JSON.parse(after['.cursor/mcp.json'] ?? '')).toEqual({
      mcpServers: { berth: { command: 'berth', args: ['mcp'] } },
    });
    expect((await init(...ALL, '--yes')).stdout).toBe('Nothing is to be changed.\n');
    expect(tree(root)).toEqual(after);
    expect(await init('--remove', '--yes')).toMatchObject({ code: 0, stdout: 'It is taken back.\n' });
    expect(tree(root)).toEqual(before);
  });

  it('keeps what was changed since, and needs no record of its own', async () => {
    const { root, state, init } = project({ 'AGENTS.md': '# Rules\n' });
    await init('--claude', '--codex', '--yes');
    const skill = join(root, '.claude/skills/berth/SKILL.md');
    expect(readFileSync(skill, 'utf8')).toContain('never with `&`');
    writeFileSync(join(root, 'AGENTS.md'), `${readFileSync(join(root, 'AGENTS.md'), 'utf8')}\nMore.\n`);
    rmSync(join(state, 'agent-setup.json'));
    await init('--remove', '--yes');
    expect(tree(root)).toMatchObject({ 'AGENTS.md': '# Rules\n\nMore.\n' });
    expect(Object.keys(tree(root)).filter((path) => /json|toml|SKILL/.test(path))).toEqual([]);
  });

  it('keeps comments and what was empty before in files that have been changed since', async () => {
    const files = {
      'opencode.jsonc': '{\n  // ask Ann first\n  "mcp": {\n    // none yet\n  },\n  "theme": "x"\n}\n',
      '.cursor/hooks.json':
        '{\n  // see the wiki\n  "hooks": {\n    // nothing yet\n    "stop": []\n  },\n  "version": 1\n}\n',
      '.cursor/mcp.json': '{}\n',
      '.mcp.json': '{\r\n  "mcpServers": {},\r\n  "version": 1, // last\r\n}\r\n',
      '.gemini/settings.json': '{\n  "mcpServers": {\n    /* b */\n  } /* a */,\n  "version": 1\n}\n',
    };
    const { root, init } = project(files);
    await init('--claude', '--gemini', '--opencode', '--cursor', '--yes');
    const edited = (text: string): string =>
      text.replace('"theme": "x"', '"theme": "y"').replace('"version": 1', '"version": 2');
    for (const path of Object.keys(files)) {
      const text = readFileSync(join(root, path), 'utf8');
      expect(text, path).toContain('berth');
      writeFileSync(join(root, path), `${edited(text)}\n`);
    }
    expect(await init('--remove', '--yes')).toMatchObject({ code: 0, stdout: 'It is taken back.\n' });
    for (const [path, text] of Object.entries(files))
      expect(readFileSync(join(root, path), 'utf8'), path).toBe(`${edited(text)}\n`);
  });

  it('removes a hook of an earlier version, and no other for the same event', async () => {
    const { root, init } = await project();
    const hook = (command: string) => ({ hooks: [{ type: 'command', command }] });
    const [old, mine] = [hook('berth agent hook idle >/dev/null 2>&1 || true'), hook('true')];
    const read = () => JSON.parse(readFileSync(join(root, '.codex/hooks.json'), 'utf8')).hooks;
    for (const [before, after] of [
      [[old], undefined],
      [[mine, old], [mine]],
    ]) {
      write(root, { '.codex/hooks.json': JSON.stringify({ hooks: { SessionStart: before } }) });
      expect((await init('--codex', '--yes')).code).toBe(0);
      expect(read().SessionStart).toEqual(after);
      expect(read().Stop).toHaveLength(1);
    }
    write(root, {
      '.codex/hooks.json': JSON.stringify({ hooks: { SessionStart: [old], Stop: [old, mine] } }),
    });
    await init('--codex', '--remove', '--yes');
    expect(read()).toEqual({ SessionStart: [], Stop: [mine] });
  });

  it('replaces or removes the plugin of an earlier version', async () => {
    const path = '.opencode/plugin/berth.js';
    const old = '// written by `berth agent init`\nexport const Berth = async () => ({});\n';
    const { root, init } = project({ [path]: old });
    expect((await init('--opencode', '--yes')).code).toBe(0);
    expect(tree(root)[path]).toContain('node:child_process');
    write(root, { [path]: old });
    expect((await init('--opencode', '--remove', '--yes')).code).toBe(0);
    expect(tree(root)[path]).toBeUndefined();
  });

  it('writes nothing without confirmation, and nothing into files that it cannot parse', async () => {
    const { root, init } = project({ '.mcp.json': '{ "mcpServers": ', '.claude/x': '' });
    const before = tree(root);
    expect(await init('--codex')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    const refused = await init('--claude', '--codex', '--yes');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /\.mcp\.json is left as it is: it is no JSON object\n[\s\S]*"command": "berth"/,
    );
    expect(tree(root)).toEqual(before);
    write(root, { '.mcp.json': '['.repeat(100_000) });
    expect((await init('--claude', '--yes')).stderr).toContain('it is no JSON object');
    write(root, { '.mcp.json': '{ "mcpServers": ' });
    for (const [text, says] of [
      ['model = \n', 'it is no TOML'],
      ['mcp_servers = { x = { command = "x" } }\n', 'its mcp_servers is an inline table'],
    ] as const) {
      write(root, { '.codex/config.toml': text });
      const codex = await init('--codex', '--yes');
      expect(codex).toMatchObject({ code: 1, stderr: expect.stringContaining(`left as it is: ${says}\n`) });
      expect(tree(root)).toEqual({ ...before, '.codex': null, '.codex/config.toml': text });
    }
    rmSync(join(root, '.codex'), { recursive: true });
    // Without a program it is the one whose files are here.
    rmSync(join(root, '.mcp.json'));
    expect((await init('--yes')).stdout).toBe('claude will use Berth from the next start on.\n');
  });

  it.each<[what: string, make: (path: string) => unknown, says: string]>([
    ['a FIFO', (path) => execFileSync('mkfifo', [path]), 'it is a FIFO, and not a file'],
    ['a device', (path) => symlinkSync('/dev/zero', path), 'it is a device, and not a file'],
    ['a link to nothing', (path) => symlinkSync('gone.md', path), 'it is a link to gone.md, which does not'],
    ['a folder', (path) => mkdirSync(path), 'it is a folder, and not a file'],
    ['a file that is not UTF-8', (path) => writeFileSync(path, LATIN1), 'it is not UTF-8'],
  ])('leaves %s as it is', async (_, make, says) => {
    const { root, init } = project();
    make(join(root, 'AGENTS.md'));
    for (const way of [['--codex'], ['--remove']]) {
      const refused = await init(...way, '--yes');
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(`AGENTS.md is left as it is: ${says}`);
    }
    expect(readdirSync(root)).toEqual(['AGENTS.md']);
  });

  it('names what is in the way where a setting has another type, and writes nothing', async () => {
    const ways: readonly (readonly [program: string, file: string, text: string, reason: string])[] = [
      ['claude', '.mcp.json', '{"mcpServers": []}', 'mcpServers is no object'],
      ['claude', '.claude/settings.local.json', '{"hooks": "none"}', 'hooks is no object'],
      ['claude', '.claude/settings.local.json', '{"hooks": {"Stop": {}}}', 'hooks.Stop is no list'],
      ['codex', '.codex/config.toml', 'mcp_servers = "none"\n', 'mcp_servers is no table'],
      ['codex', '.codex/config.toml', '[[mcp_servers]]\na = 1\n', 'mcp_servers is no table'],
      ['codex', '.codex/hooks.json', '{"hooks": []}', 'hooks is no object'],
      ['gemini', '.gemini/settings.json', '{"mcpServers": null}', 'mcpServers is no object'],
      ['opencode', 'opencode.json', '{"mcp": true}', 'mcp is no object'],
      ['cursor', '.cursor/hooks.json', '{"hooks": 3}', 'hooks is no object'],
    ];
    for (const [program, file, text, reason] of ways) {
      const { init, root } = project({ [file]: text });
      const refused = await init(`--${program}`, '--yes');
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr.split('\n')[0]).toContain(`${join(root, file)} is left as it is: ${reason}`);
      const removed = await init(`--${program}`, '--remove', '--yes');
      expect(removed).toMatchObject({ code: 0, stdout: 'Nothing is to be changed.\n' });
      expect(Object.values(tree(root)).filter((content) => content !== null)).toEqual([text]);
    }
  });

  it('keeps what is edited while it asks', async () => {
    const { root, env } = project({ 'AGENTS.md': '# Rules\n' });
    const terminal = pty.spawn(process.execPath, [BIN, 'agent', 'init', '--codex'], {
      ...{ cwd: root, env: { ...env, TERM: 'xterm' }, encoding: null, cols: 200, rows: 200 },
    });
    let shown = '';
    terminal.onData((bytes) => {
      shown += bytes.toString();
    });
    const ended = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    await eventually(() => shown.includes('Write this?'));
    writeFileSync(join(root, 'AGENTS.md'), '# Other rules\n');
    writeSync(terminal.fd, 'y\r');
    expect(await ended).toBe(1);
    expect(tree(root)).toEqual({ 'AGENTS.md': '# Other rules\n' });
    await eventually(() => shown.includes('AGENTS.md has been edited meanwhile: nothing was changed'));
  });

  it('takes back what several that wrote at once have written', async () => {
    const state = folder();
    const projects = Array.from({ length: 4 }, () => project(OWN, state));
    const before = projects.map(({ root }) => tree(root));
    const written = await Promise.all(projects.map(({ init }) => init(...ALL, '--yes')));
    expect(written.map(({ code }) => code)).toEqual(projects.map(() => 0));
    for (const { init } of projects) await init('--remove', '--yes');
    expect(projects.map(({ root }) => tree(root))).toEqual(before);
  });
});

describe('every edit', () => {
  const plans = SETUP_PROGRAMS.flatMap((name) => setupPlan(name).map((planned) => ({ name, ...planned })));

  it('is applied once, and can be undone', async () => {
    for (const { name, paths, edit } of plans) {
      const once = await withEdit(null, edit);
      expect(await withEdit(once, edit), `${name} ${paths[0]}`).toBe(once);
      // Only removes what an earlier version has written.
      if (edit.kind === 'item' && edit.item === null) expect(once).toBe('');
      else if (edit.kind !== 'value' || edit.path[0] !== 'version')
        expect(withoutEdit(once, edit, null)).toBeNull();
    }
  });

  it('keeps an entry of the user with the same name', async () => {
    const mine = '{"mcpServers":{"berth":{"command":"/opt/berth","args":["mcp"]}}}';
    const [planned] = setupPlan('claude');
    expect(planned && (await withEdit(mine, planned.edit))).toBe(mine);
    expect(planned && withoutEdit(mine, planned.edit, null)).toBe(mine);
    const [toml] = setupPlan('codex');
    for (const taken of [
      '[mcp_servers.berth]\ncommand = "x"\n',
      '[mcp_servers]\nberth = { command = "x" }\n',
      'mcp_servers.berth.command = "x"\n',
      '["mcp_servers".\'berth\']\ncommand = "x"\n',
    ])
      expect(toml && (await withEdit(taken, toml.edit))).toBe(taken);
  });
});

describe('removeJsonc', () => {
  it.each([
    ['the only entry', '{\n  "a": {\n    "x": 1\n  },\n  "b": 2\n}', '{\n  "b": 2\n}'],
    ['comments around it', '{ "a": { /* 1 */ "x": 1 /* 2 */ } }', '{ "a": { /* 1 */ /* 2 */ } }'],
    [
      'a line of its own',
      '{"a": {\n  "o": 1, // o\n  // x\n  "x": 1\n}}',
      '{"a": {\n  "o": 1 // o\n  // x\n}}',
    ],
    ['the first of two', '{"a": {"x": {"y": 1}, /* o */ "o": 1}}', '{"a": { /* o */ "o": 1}}'],
    ['a trailing comma', '{"a": {\r\n\t"o": 1,\r\n\t"x": 1,\r\n}}', '{"a": {\r\n\t"o": 1,\r\n}}'],
    ['commas in front', '{"a": {\n  "o": 1\n  , "x": 1\n}}', '{"a": {\n  "o": 1\n}}'],
    ['a comment behind it', '{"a": {\n  "x": 1, // x\n  "o": 1\n}}', '{"a": {\n  // x\n  "o": 1\n}}'],
    ['a key given twice', '{"a": {"x": 1}, "a": {"o": 1, "x": 2}}', '{"a": {"x": 1}, "a": {"o": 1}}'],
    ['a missing value', '{"a": {"o": 1}}', '{"a": {"o": 1}}'],
  ])('removes a value with its comma and nothing else: %s', (_, text, left) => {
    expect(removeJsonc(text, ['a', 'x'], () => false)).toBe(left);
  });

  it('keeps an empty container that it is told to keep, and removes items of lists', () => {
    const text = '{"a": [{"x": 1}], "b": [1, 2, 3]}';
    expect(removeJsonc(text, ['a', 0, 'x'], (path) => path.length === 1)).toBe('{"a": [], "b": [1, 2, 3]}');
    expect(removeJsonc(text, ['a', 0, 'x'], () => false)).toBe('{ "b": [1, 2, 3]}');
    expect(removeJsonc(text, ['b', 1], () => false)).toBe('{"a": [{"x": 1}], "b": [1, 3]}');
  });
});

describe('berth agent hook', () => {
  it('reports the state of the agent that it runs in', async () => {
    const daemon = await daemonOf();
    const told = JSON.stringify({ session_id: 's-1', message: 'May I?\n\u0007' });
    const hook = `${process.execPath} ${BIN} agent hook`;
    const cmd = `echo '${told}' | ${hook} blocked; echo told; exec cat`;
    await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd });
    const agent = async () => (await daemon.request('GET', '/v1/agents/bot')).body;
    await eventually(async () => (await agent()).stateReason.authority === 'hook');
    expect(await agent()).toMatchObject({ state: 'blocked' });
  });

  it('reports nothing for another program that the agent runs', async () => {
    const daemon = await daemonOf();
    const hook = `${process.execPath} ${BIN} agent hook`;
    const told = (state: string, id: string) => `echo '{"session_id":"${id}"}' | ${hook} ${state}`;
    // Of another type, of the same type in its shell, and its own. What follows the command is a comment.
    const cmd = [
      `${told('blocked', 'other')} --type codex; echo $? >> answers`,
      `export GEMINI_CLI=1; ${told('blocked', 'nested')} --type gemini; echo $? >> answers; unset GEMINI_CLI`,
      `${told('working', 'own')} --type gemini; exec cat #`,
    ].join('\n');
    const cwd = folder();
    await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', agent_type: 'gemini', cmd, cwd });
    const agent = async () => (await daemon.request('GET', '/v1/agents/bot')).body;
    await eventually(async () => (await agent()).sessionId === 'own', agent);
    expect(await agent()).toMatchObject({ state: 'working', stateReason: { authority: 'hook' } });
    expect(readFileSync(join(cwd, 'answers'), 'utf8')).toBe('0\n0\n');
    const { body } = await daemon.request('GET', '/v1/events/history?types=agent.state');
    expect(JSON.stringify(body)).not.toContain('blocked');
  });

  it('does nothing outside of an agent', async () => {
    const env = cleanEnv(folder());
    expect(await berth(['agent', 'hook', 'idle'], { env, input: '{' })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(await berth(['agent', 'hook', 'dancing'], { env })).toMatchObject({ code: 2 });
  });
});
