// docs/reference.md "Agents" on the real daemon with real programs in terminals.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openTerminalScreen } from '../../src/adapters/terminal_screen.ts';
import { createClient } from '../../src/client/create_client.ts';
import { nodeTransport } from '../../src/client/node_transport.ts';
import { type Daemon, eventually, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort, ownPorts } from '../kit/free_ports.ts';
import { hostileSequences } from '../kit/hostile_output.ts';
import { type Answer, send } from '../kit/http_request.ts';
import { hasChromium, openPage } from './browser.ts';

/** Port ranges of their own, so that simultaneous test files do not take each other's ports. */
const [first] = ownPorts(110);
const agentPorts = (count: number): string => `[agents]\nports = [${first}, ${first + count - 1}]\n`;

const spinup = (daemon: Daemon, spec: object): Promise<Answer> =>
  daemon.request('POST', '/v1/agents/spinup', spec);
const remove = (daemon: Daemon, name: string): Promise<Answer> =>
  daemon.request('DELETE', `/v1/agents/${name}`);
const lines = async (daemon: Daemon, name: string, query = ''): Promise<string[]> =>
  (await daemon.request('GET', `/v1/agents/${name}/logs${query}`)).body.lines;

interface Viewer {
  socket: WebSocket;
  output(): Buffer;
  texts: {
    ack?: number;
    size?: [number, number];
    exit?: { exitCode: number | null; signal: string | null };
  }[];
  type(keys: string): void;
  say(message: object | string): void;
  /** The screen of a terminal of this size after all received output. */
  shows(cols?: number, rows?: number): Promise<string>;
  closed: Promise<number>;
}

async function attach(daemon: Daemon, name: string, options: { acks?: boolean } = {}): Promise<Viewer> {
  const socket = new WebSocket(`ws://127.0.0.1:${daemon.port}/v1/agents/${name}/attach`, ['berth.v1'], {
    perMessageDeflate: false,
  });
  const parts: Buffer[] = [];
  const texts: Viewer['texts'] = [];
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) texts.push(JSON.parse(data.toString()));
    else {
      parts.push(data);
      if (options.acks !== false) socket.send(JSON.stringify({ ack: data.length }));
    }
  });
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  await once(socket, 'open');
  return {
    socket,
    texts,
    closed,
    output: () => Buffer.concat(parts),
    type: (keys) => socket.send(Buffer.from(keys)),
    say: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    shows: async (cols = 120, rows = 32) => {
      const screen = await openTerminalScreen(cols, rows);
      await screen.write(Buffer.concat(parts));
      const drawn = screen.snapshot().toString();
      screen.close();
      return drawn;
    },
  };
}

const hasProgram = (name: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`]);
    return true;
  } catch {
    return false;
  }
};

describe('spinup', () => {
  it('answers as specified, and the agent is a service', async () => {
    const daemon = await startDaemon({ config: agentPorts(3) });
    const answer = await spinup(daemon, { name: 'my_bot', cmd: 'exec sleep 600' });
    expect(answer.status).toBe(201);
    expect(Object.keys(answer.body).slice(0, 4)).toEqual(['port', 'name', 'active', 'hostname']);
    expect(answer.body).toMatchObject({
      port: first,
      name: 'my_bot',
      active: true,
      hostname: 'my-bot.agents.localhost',
      agent_type: null,
    });
    const { body } = await daemon.request('GET', '/v1/agents');
    expect(body).toEqual({
      agents: [
        {
          port: first,
          name: 'my_bot',
          active: true,
          pid: answer.body.pid,
          hostname: 'my-bot.agents.localhost',
          agent_type: null,
          group: 'Agents',
          ...{ project: null, stack: null, service: null },
          state: expect.stringMatching(/^(starting|idle)$/),
          stateSince: expect.any(String),
          stateReason: { authority: expect.any(String), rule: expect.any(String) },
          ...{ question: [], title: '', lastOutputAt: null, viewers: 0, sessionId: null },
          cwd: homedir(),
        },
      ],
    });
    const one = await daemon.request('GET', '/v1/agents/my_bot');
    expect(one.body).toMatchObject({
      name: 'my_bot',
      pid: answer.body.pid,
      cmd: 'exec sleep 600',
      cols: 120,
    });
    expect((await daemon.request('GET', '/v1/agents/nobody')).body.code).toBe('unknown_agent');
    expect((await daemon.request('GET', '/v1/services/my_bot')).body.group).toBe('Agents');
    expect((await daemon.request('GET', '/v1/groups')).body.groups).toEqual([
      { name: 'Agents', services: 1, running: expect.any(Number) },
    ]);
    const again = await spinup(daemon, { name: 'my_bot', cmd: 'exec sleep 600' });
    expect([again.status, again.body.code]).toEqual([409, 'already_running']);
    const collides = await spinup(daemon, { name: 'my-bot', cmd: 'exec sleep 600' });
    expect([collides.status, collides.body.code]).toEqual([409, 'name_in_use']);
    const removed = await remove(daemon, 'my_bot');
    expect([removed.status, removed.body]).toEqual([200, { removed: true, name: 'my_bot', port: first }]);
    expect(isAlive(answer.body.pid)).toBe(false);
    const gone = await remove(daemon, 'my_bot');
    expect([gone.status, gone.body.code]).toEqual([404, 'unknown_agent']);
    await spinup(daemon, { name: 'my_bot', cmd: 'exec sleep 600' });
    const asService = await daemon.request('DELETE', '/v1/services/my_bot');
    expect([asService.status, asService.body]).toEqual([200, { removed: true, name: 'my_bot' }]);
    expect((await daemon.request('GET', '/v1/agents')).body.agents).toEqual([]);
  });

  it('gives each of 101 simultaneous spinups its own port, and the next one none', async () => {
    const daemon = await startDaemon({ config: agentPorts(101) });
    const answers = await Promise.all(
      Array.from({ length: 101 }, (_, index) => spinup(daemon, { name: `a${index}`, cmd: 'exec sleep 600' })),
    );
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 201));
    const ports = answers.map((answer) => answer.body.port as number).sort((a, b) => a - b);
    expect(ports).toEqual(Array.from({ length: 101 }, (_, index) => first + index));
    const full = await spinup(daemon, { name: 'more', cmd: 'exec sleep 600' });
    expect([full.status, full.body.code]).toEqual([409, 'port_in_use']);
    expect((await daemon.request('GET', '/v1/services/more')).status).toBe(404);
    const freed = (await remove(daemon, 'a50')).body.port;
    expect((await spinup(daemon, { name: 'more', cmd: 'exec sleep 600' })).body.port).toBe(freed);
  });

  it('never gives a port twice when the daemon is killed in the middle', async () => {
    const one = await startDaemon({ config: agentPorts(40) });
    const asked = Array.from({ length: 40 }, (_, index) =>
      spinup(one, { name: `a${index}`, cmd: 'exec sleep 600' }).catch(() => undefined),
    );
    await Promise.race(asked);
    one.signal('SIGKILL');
    const answered = (await Promise.all(asked)).filter((answer) => answer?.status === 201);
    await one.exited;
    const two = await startDaemon({ stateDir: one.stateDir, config: agentPorts(40) });
    const after = await Promise.all(
      Array.from({ length: 40 }, (_, index) => spinup(two, { name: `b${index}`, cmd: 'exec sleep 600' })),
    );
    const { agents } = (await two.request('GET', '/v1/agents')).body;
    const ports = agents.map((agent: { port: number }) => agent.port);
    expect(new Set(ports).size).toBe(ports.length);
    for (const answer of answered) {
      expect(agents).toContainEqual(expect.objectContaining({ name: answer?.body.name, active: true }));
    }
    expect(after.filter((answer) => answer.status === 201).length).toBe(
      40 - (agents.length - after.filter((answer) => answer.status === 201).length),
    );
  });

  it('skips a port that is in use', async () => {
    const daemon = await startDaemon({ config: agentPorts(3) });
    const server = http.createServer().listen(first, '127.0.0.1');
    await once(server, 'listening');
    try {
      expect((await spinup(daemon, { name: 'bot', cmd: 'exec sleep 600' })).body.port).toBe(first + 1);
      const taken = await spinup(daemon, { name: 'other', cmd: 'exec sleep 600', port: first });
      expect([taken.status, taken.body.code]).toEqual([409, 'port_in_use']);
    } finally {
      server.close();
    }
  });

  it.each([
    ['no name', {}, 'name'],
    ['no host label', { name: '_-', cmd: 'true' }, 'name'],
    ['neither cmd nor type', { name: 'bot' }, 'cmd'],
    ['an unknown type', { name: 'bot', agent_type: 'skynet' }, 'agent_type'],
    ['a port out of range', { name: 'bot', cmd: 'true', port: 70_000 }, 'port'],
    ['vllm without its model', { name: 'bot', agent_type: 'vllm' }, 'VLLM_MODEL'],
    ['ray without its app', { name: 'bot', agent_type: 'ray' }, 'RAY_APP'],
    ['an unknown field', { name: 'bot', cmd: 'true', color: 'red' }, 'color'],
  ])('refuses %s', async (_what, spec, field) => {
    const daemon = await startDaemon();
    const answer = await spinup(daemon, spec);
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_spec']);
    expect(JSON.stringify(answer.body)).toContain(field);
    expect((await daemon.request('GET', '/v1/agents')).body.agents).toEqual([]);
  });

  it('prints how to install a missing program', async () => {
    const daemon = await startDaemon({ env: { PATH: '/nonexistent' } });
    const answer = await spinup(daemon, { name: 'bot', agent_type: 'ollama' });
    expect([answer.status, answer.body.code]).toEqual([502, 'start_failed']);
    expect(`${answer.body.message} ${answer.body.hint}`).toMatch(/ollama/);
    expect((await daemon.request('GET', '/v1/agents')).body.agents).toEqual([]);
  });

  it('keeps names of services and of agents apart', async () => {
    const daemon = await startDaemon();
    await daemon.request('POST', '/v1/services', { name: 'plain', port: freePort(), cmd: 'true' });
    expect((await spinup(daemon, { name: 'plain', cmd: 'true' })).body.code).toBe('name_in_use');
    await spinup(daemon, { name: 'bot', cmd: 'exec sleep 600' });
    const taken = await daemon.request('POST', '/v1/services', { name: 'bot', port: 9, cmd: 'true' });
    expect([taken.status, taken.body.code]).toEqual([409, 'name_in_use']);
    const reserved = await daemon.request('POST', '/v1/services', {
      name: 'x',
      port: 9,
      cmd: 'true',
      group: 'Agents',
    });
    expect([reserved.status, reserved.body.code]).toEqual([400, 'invalid_spec']);
    expect(JSON.stringify(reserved.body)).toContain('spinup');
  });
});

describe('an agent', () => {
  it('ends with its whole tree, background jobs included', async () => {
    const daemon = await startDaemon();
    // A marker of this test alone, also when it runs elsewhere on this machine.
    const time = `600.${process.pid}`;
    await spinup(daemon, {
      name: 'bot',
      cmd: `bash -ic "sleep ${time} & sleep ${time} & disown -a; sleep ${time}"`,
    });
    const pids = await eventually(() => {
      const found = readdirSync('/proc')
        .filter((pid) => /^\d+$/.test(pid))
        .filter((pid) => {
          try {
            return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${time}\0`;
          } catch {
            return false;
          }
        });
      return found.length >= 3 && found.map(Number);
    });
    expect((await remove(daemon, 'bot')).status).toBe(200);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('keeps running in its terminal when the daemon is killed', async () => {
    const one = await startDaemon();
    await spinup(one, { name: 'bot', cmd: 'while read line; do echo "heard $line"; done' });
    const before = await attach(one, 'bot');
    before.type('first\r');
    await eventually(() => before.output().includes('heard first'));
    one.signal('SIGKILL');
    await one.exited;
    const two = await startDaemon({ stateDir: one.stateDir });
    const after = await attach(two, 'bot');
    await eventually(() => after.output().includes('heard first'));
    after.type('second\r');
    await eventually(() => after.output().includes('heard second'));
    expect(await lines(two, 'bot')).toEqual(expect.arrayContaining(['heard first', 'heard second']));
    after.socket.close();
  });

  it('logs the text that a user would have read', async () => {
    const daemon = await startDaemon();
    const script = join(newFolder(), 'show.sh');
    writeFileSync(
      script,
      String.raw`printf '\033[31mred\033[0m text\r\n'
for i in 1 2 3; do printf '\rprogress %d%%' $i; done; printf '\n'
printf 'wrong\b\b\b\b\bright\n'
printf 'caf\303\251 \342\202\254\n'
printf '\033]0;title\007after title\n'
printf 'no newline'
exec sleep 600
`,
    );
    await spinup(daemon, { name: 'bot', cmd: `exec bash ${script}` });
    const shown = await eventually(async () => {
      const read = await lines(daemon, 'bot');
      return read.at(-1) === 'no newline' && read;
    });
    expect(shown).toEqual(['red text', 'progress 3%', 'right', 'café €', 'after title', 'no newline']);
    const raw = await lines(daemon, 'bot', '?raw=true&lines=6');
    expect(raw[0]).toContain('\x1b[31mred');
    expect(await lines(daemon, 'bot', '?lines=2')).toEqual(['after title', 'no newline']);
    for (const query of ['?lines=0', '?lines=-1', '?lines=x', '?lines=1.5', '?lines=1&lines=2']) {
      const bad = await daemon.request('GET', `/v1/agents/bot/logs${query}`);
      expect([query, bad.status]).toEqual([query, 400]);
    }
    expect((await daemon.request('GET', '/v1/agents/bot/logs?lines=5000')).status).toBe(200);
  });

  it('that prints and exits at once loses nothing', async () => {
    const daemon = await startDaemon();
    for (let round = 0; round < 20; round += 1) {
      await spinup(daemon, { name: 'bot', cmd: `seq 1 300; echo done ${round}` });
      await eventually(async () => !(await daemon.request('GET', '/v1/agents')).body.agents[0].active);
      const shown = await lines(daemon, 'bot', '?lines=301');
      expect(shown).toEqual([
        ...Array.from({ length: 300 }, (_, index) => String(index + 1)),
        `done ${round}`,
      ]);
    }
  });

  it('is never blocked by unread output', async () => {
    const daemon = await startDaemon({ config: '[logs]\nmax_bytes = 1000000\nkeep = 2\n' });
    await spinup(daemon, {
      name: 'bot',
      cmd: 'yes 0123456789012345678901234567890123456789 | head -c 10000000; echo the end; exec sleep 600',
    });
    await eventually(async () => (await lines(daemon, 'bot', '?lines=1'))[0]?.endsWith('the end'));
  });

  it('has no file descriptor of another agent, nor has a service', async () => {
    const daemon = await startDaemon();
    const pids: number[] = [];
    for (let index = 0; index < 10; index += 1) {
      pids.push((await spinup(daemon, { name: `a${index}`, cmd: 'exec sleep 600' })).body.pid);
      await daemon.request('POST', '/v1/services', {
        name: `s${index}`,
        port: freePort(),
        cmd: 'exec sleep 600',
      });
      pids.push((await daemon.request('POST', `/v1/services/s${index}/start`)).body.pid);
    }
    for (const pid of pids) {
      // It has libraries open while it loads; inherited descriptors would stay.
      const open = await eventually(() => {
        const all = readdirSync(`/proc/${pid}/fd`);
        return all.sort().join() === '0,1,2' && all;
      });
      expect(open.map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))).not.toContain('/dev/ptmx');
    }
  });
});

describe('attach', () => {
  it('needs a running agent', async () => {
    const daemon = await startDaemon();
    const refused = async (name: string): Promise<number> => {
      const socket = new WebSocket(`ws://127.0.0.1:${daemon.port}/v1/agents/${name}/attach`, ['berth.v1']);
      socket.on('error', () => undefined);
      const [, response] = (await once(socket, 'unexpected-response')) as [unknown, http.IncomingMessage];
      response.resume();
      return response.statusCode ?? 0;
    };
    expect(await refused('nobody')).toBe(404);
    await spinup(daemon, { name: 'bot', cmd: 'exit 0' });
    await eventually(async () => !(await daemon.request('GET', '/v1/agents')).body.agents[0].active);
    expect(await refused('bot')).toBe(409);
  });

  it('takes a token as a subprotocol and answers with its own subprotocol', async () => {
    const daemon = await startDaemon({ config: '[auth]\ntoken = "secret"\n' });
    const headers = { Authorization: 'Bearer secret' };
    await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec sleep 600' }, headers);
    const url = `ws://127.0.0.1:${daemon.port}/v1/agents/bot/attach`;
    const open = async (protocols: string[]): Promise<string> => {
      const socket = new WebSocket(url, protocols);
      socket.on('error', () => undefined);
      const answer = await Promise.race([
        once(socket, 'open').then(() => socket.protocol),
        once(socket, 'unexpected-response').then(([, response]) => String(response.statusCode)),
      ]);
      socket.terminate();
      return answer;
    };
    const token = (value: string): string =>
      `base64url.bearer.authorization.berth.${Buffer.from(value).toString('base64url')}`;
    expect(await open(['berth.v1', token('secret')])).toBe('berth.v1');
    expect(await open(['berth.v1', token('wrong')])).toBe('401');
    expect(await open(['berth.v1'])).toBe('401');
  });

  it('shows two viewers the same, resizes for both, and reports how it ended', async () => {
    const daemon = await startDaemon();
    await spinup(daemon, { name: 'bot', cmd: 'exec bash --norc --noprofile', cols: 80, rows: 24 });
    const one = await attach(daemon, 'bot');
    await eventually(() => one.texts.some((text) => text.size));
    expect(one.texts.slice(0, 2)).toEqual([{ ack: 0 }, { size: [80, 24] }]);
    const two = await attach(daemon, 'bot');
    one.type('echo $((6*7))\r');
    await eventually(() => one.output().includes('42') && two.output().includes('42'));
    two.say({ resize: [100, 30] });
    await eventually(() => one.texts.some((text) => text.size?.[0] === 100));
    one.type('stty size\r');
    await eventually(() => two.output().includes('30 100'));
    await eventually(async () => (await two.shows(100, 30)) === (await one.shows(100, 30)));
    one.type('exit 3\r');
    expect(await Promise.all([one.closed, two.closed])).toEqual([1000, 1000]);
    expect(one.texts.at(-1)).toEqual({ exit: { exitCode: 3, signal: null } });
  });

  it.runIf(hasProgram('top'))(
    'can use a full-screen program, and shows it after a reconnect (top)',
    async () => {
      const daemon = await startDaemon();
      await spinup(daemon, { name: 'bot', cmd: 'exec top -d 0.5' });
      const one = await attach(daemon, 'bot');
      await eventually(async () => (await one.shows()).includes('PID'));
      one.socket.close();
      await one.closed;
      const two = await attach(daemon, 'bot');
      await eventually(async () => /PID[\s\S]*COMMAND/.test(await two.shows()));
      two.type('q');
      expect(await two.closed).toBe(1000);
    },
  );

  it.runIf(hasProgram('vi'))('can edit a file (vi)', async () => {
    const daemon = await startDaemon();
    const file = join(newFolder(), 'note.txt');
    // With a home of its own: editors share a history there, and ask about it when they meet.
    await spinup(daemon, { name: 'bot', cmd: `exec env HOME=${newFolder()} vi ${file}` });
    const one = await attach(daemon, 'bot');
    await eventually(
      async () => (await one.shows()).includes('~'),
      () => one.output().toString(),
    );
    one.type('ihello from afar\x1b:wq\r');
    expect(await one.closed).toBe(1000);
    expect(execFileSync('cat', [file]).toString()).toBe('hello from afar\n');
  });

  it('closes with 1007 on text that is not a known message', async () => {
    const daemon = await startDaemon();
    await spinup(daemon, { name: 'bot', cmd: 'exec sleep 600' });
    for (const text of [
      'x',
      '{}',
      '{"resize":[0,0]}',
      '{"resize":[80,24],"ack":1}',
      '[]',
      'null',
      '{"ack":-1}',
    ]) {
      const viewer = await attach(daemon, 'bot');
      viewer.say(text);
      expect([text, await viewer.closed]).toEqual([text, 1007]);
    }
  });

  it('delays neither the program nor another viewer when one viewer does not read', async () => {
    const daemon = await startDaemon();
    const gate = join(newFolder(), 'gate');
    await spinup(daemon, {
      name: 'bot',
      cmd: `while [ ! -e ${gate} ]; do sleep 0.02; done; seq 1 600000; echo the end; exec sleep 600`,
    });
    const slow = await attach(daemon, 'bot', { acks: false });
    const quick = await attach(daemon, 'bot');
    writeFileSync(gate, '');
    await eventually(() => quick.output().includes('the end'));
    expect(slow.output().length).toBeLessThan(2 * 1024 * 1024);
    slow.say({ ack: slow.output().length });
    await eventually(() => slow.output().includes('the end'));
  });
});

describe('an abused terminal', () => {
  it('does not affect others, whatever its program prints', async () => {
    const daemon = await startDaemon();
    const file = join(newFolder(), 'output');
    const hostile = hostileSequences().map((sequence) => `${sequence.repeat(50)}\r\n`);
    writeFileSync(file, Buffer.from(hostile.join(''), 'latin1'));
    const cmd = `stty raw -echo; cat ${file}; printf '\\033c\\033[?1049lthe end\\r\\n'; exec cat`;
    await spinup(daemon, { name: 'bad', cmd });
    await spinup(daemon, { name: 'good', cmd: 'exec cat' });
    await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'exec sleep 600' });
    const bad = await attach(daemon, 'bad');
    const good = await attach(daemon, 'good');
    for (let round = 0; round < 3; round += 1) {
      good.type(`line ${round}\n`);
      for (const action of ['start', 'stop'])
        expect(await daemon.request('POST', `/v1/services/web/${action}`)).toMatchObject({ status: 200 });
      await eventually(() => good.output().includes(`line ${round}`));
      bad.type('\x1b[2147483647Sx\x1b[2147483647b');
    }
    // A screen that takes too long to draw is left out, and what comes afterwards is shown.
    const late = await attach(daemon, 'bad');
    for (const viewer of [bad, late])
      await eventually(() => {
        viewer.type('alive');
        return viewer.output().includes('alive');
      });
    // The emulator does not log what it finds.
    expect(daemon.stderr()).not.toMatch(/pars|defect|crashed/i);
  });

  it('closes a viewer whose program does not read, and does not affect others', async () => {
    const daemon = await startDaemon();
    await spinup(daemon, { name: 'deaf', cmd: 'stty raw -echo; exec sleep 600' });
    await spinup(daemon, { name: 'good', cmd: 'stty raw -echo; exec cat' });
    await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'exec sleep 600' });
    const good = await attach(daemon, 'good');
    const flood = Buffer.alloc(64 * 1024, 'x');
    let typed = '';
    for (let round = 0; round < 3; round += 1) {
      const pushy = await attach(daemon, 'deaf');
      pushy.socket.on('error', () => undefined);
      for (let count = 0; count < 500; count += 1) pushy.socket.send(flood);
      for (const key of 'abcdefghij') good.type(key);
      typed += 'abcdefghij';
      for (const action of ['start', 'stop'])
        expect(await daemon.request('POST', `/v1/services/web/${action}`)).toMatchObject({ status: 200 });
      expect(await pushy.closed).toBe(1008);
    }
    await eventually(() => good.output().toString().endsWith(typed));
    expect(daemon.stderr()).not.toContain('the process host is gone');
  });
});

describe('long input through the client', () => {
  const KIB = 1024;
  const pasted = Buffer.from(Array.from({ length: 640 * KIB }, (_, n) => `${1_000_000 + n} `).join(''));
  const typist = (daemon: Daemon, name: string) =>
    createClient(nodeTransport, { url: `http://127.0.0.1:${daemon.port}` }).attach(name, {
      onOutput: () => {},
    });

  it('arrives whole when the program reads it late and slowly', async () => {
    const daemon = await startDaemon();
    const cwd = newFolder();
    const read = 'for part in 1 2 3 4 5; do head -c 1048576 >> sink; sleep 0.1; done';
    const cmd = `stty raw -echo; echo ready; while [ ! -e gate ]; do sleep 0.02; done; ${read}; exit 4`;
    await spinup(daemon, { name: 'late', cmd, cwd });
    await eventually(async () => (await lines(daemon, 'late')).includes('ready'));
    const [session, other] = [await typist(daemon, 'late'), await attach(daemon, 'late')];
    session.write(pasted);
    writeFileSync(join(cwd, 'gate'), '');
    expect(await session.ended).toMatchObject({ exit: { exitCode: 4 }, undelivered: 0 });
    expect(readFileSync(join(cwd, 'sink')).equals(pasted)).toBe(true);
    expect(await other.closed).toBe(1000);
  });

  it('is reported as far as the program has ended without reading it', async () => {
    const daemon = await startDaemon();
    const cmd = 'stty raw -echo; echo ready; head -c 1000000 > sink; exit 5';
    await spinup(daemon, { name: 'brief', cmd, cwd: newFolder() });
    await eventually(async () => (await lines(daemon, 'brief')).includes('ready'));
    const session = await typist(daemon, 'brief');
    session.write(pasted);
    const { exit, undelivered } = await session.ended;
    expect(exit).toEqual({ exitCode: 5, signal: null });
    // What it has not read is in the kernel, under way, or with the client.
    expect(undelivered).toBeGreaterThan(pasted.length - 1_000_000 - 512 * KIB);
  });
});

describe('the ready URL of an agent', () => {
  it('may have $PORT for a port that is not known yet', async () => {
    const daemon = await startDaemon({ config: agentPorts(3) });
    const { status, body } = await spinup(daemon, {
      name: 'page',
      cmd: 'exec python3 -m http.server $PORT --bind 127.0.0.1',
      cwd: newFolder(),
      ready: 'http://127.0.0.1:$PORT/',
    });
    expect(status).toBe(201);
    const get = async () => (await daemon.request('GET', '/v1/services/page')).body;
    await eventually(async () => (await get()).status === 'running');
    expect((await get()).ready).toBe(`http://127.0.0.1:${body.port}/`);
    const { components } = (await daemon.request('GET', '/openapi.json')).body;
    expect(JSON.stringify(components)).toContain('$PORT in it is the port of the agent');
  });
});

describe('the gateway', () => {
  it('reaches an agent by its host name, with curl and as a browser would', async () => {
    const daemon = await startDaemon();
    const answer = await spinup(daemon, {
      name: 'page',
      cmd: 'exec python3 -m http.server $PORT --bind 127.0.0.1',
      cwd: newFolder(),
    });
    const url: string = await eventually(async () => {
      const { body } = await daemon.request('GET', '/v1/version');
      return body.gatewayPort && `http://page.agents.localhost:${body.gatewayPort}/`;
    });
    expect(answer.body.gatewayUrl).toBe(url);
    const { port } = new URL(url);
    const curl = (): string =>
      execFileSync('curl', ['-s', '--resolve', `page.agents.localhost:${port}:127.0.0.1`, url]).toString();
    await eventually(() => curl().includes('Directory listing'));
    await remove(daemon, 'page');
    expect(JSON.parse(curl()).code).toBe('unknown_agent');
  });

  it.runIf(hasChromium)('opens in a browser', async () => {
    const daemon = await startDaemon();
    const folder = newFolder();
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>bot</title><h1>it works here</h1>');
    const { body } = await spinup(daemon, {
      name: 'page',
      cmd: 'exec python3 -m http.server $PORT --bind 127.0.0.1',
      cwd: folder,
      ready: undefined,
    });
    const { host, port } = new URL(body.gatewayUrl);
    await eventually(
      async () => (await send(Number(port), 'GET', '/', { headers: { host } })).status === 200,
    );
    const page = await openPage(body.gatewayUrl);
    await page.getByRole('heading', { name: 'it works here' }).waitFor();
  });
});
