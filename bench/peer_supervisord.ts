// supervisor (Debian's package) in the comparison: the system's copy, or one unpacked into the folder without
// installation.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isAlive } from './kit/process_stats.ts';
import { type Install, NAMES, TALK, TALKERS } from './peer_interface.ts';

const PYTHON = '/usr/bin/python3';

/** The command that starts `supervisord`; null where it is not available. */
function command(folder: string): { args: string[]; path: string } | null {
  const module = ['-m', 'supervisor.supervisord'];
  const works = (path: string): boolean =>
    spawnSync(PYTHON, [...module, '--version'], { env: { PYTHONPATH: path } }).status === 0;
  if (works('')) return { args: module, path: '' };
  if (spawnSync('apt-get', ['download', 'supervisor'], { cwd: folder }).status !== 0) return null;
  const file = readdirSync(folder).find((name) => name.endsWith('.deb'));
  if (file === undefined) return null;
  execFileSync('dpkg', ['-x', file, 'unpacked'], { cwd: folder });
  const path = join(folder, 'unpacked/usr/lib/python3/dist-packages');
  return works(path) ? { args: module, path } : null;
}

const program = (name: string, command = 'sleep 1000'): string =>
  `[program:${name}]\ncommand=${command}\nautostart=false\nautorestart=false\nstartsecs=0\n`;

function configuration(folder: string, socket: string): string {
  return [
    `[supervisord]\npidfile=${folder}/pid\nlogfile=${folder}/log\nchildlogdir=${folder}\nnodaemon=true\nminfds=4096\n`,
    `[unix_http_server]\nfile=${socket}\n`,
    '[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n',
    ...['one', ...NAMES].map((name) => program(name)),
    ...TALKERS.map((name) => program(name, `/bin/sh -c "${TALK}"`)),
    `[group:bench]\nprograms=${NAMES.join(',')}\n`,
    `[group:talkers]\nprograms=${TALKERS.join(',')}\n`,
  ].join('\n');
}

/** Calls a method of its XML-RPC interface; resolves with the text of the response. */
function call(socketPath: string, method: string, ...values: string[]): Promise<string> {
  const params = values.map((value) => `<param><value><string>${value}</string></value></param>`).join('');
  const body = `<?xml version="1.0"?><methodCall><methodName>supervisor.${method}</methodName><params>${params}</params></methodCall>`;
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'text/xml', 'Content-Length': body.length };
    const request = http.request(
      { socketPath, path: '/RPC2', method: 'POST', headers, agent: false },
      (answer) => {
        let text = '';
        answer.on('data', (part) => {
          text += part;
        });
        answer.on('end', () => (text.includes('<fault>') ? reject(new Error(text)) : resolve(text)));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const member = (text: string, name: string): string =>
  new RegExp(`<name>${name}</name>\\s*<value><\\w+>([^<]*)`).exec(text)?.[1] ?? '';

export const supervisor: Install = async (folder) => {
  const found = command(folder);
  if (!found) return null;
  const socket = join(folder, 'socket');
  const config = join(folder, 'supervisord.conf');
  writeFileSync(config, configuration(folder, socket));
  const rpc = (method: string, ...values: string[]) => call(socket, method, ...values);
  let child: ChildProcess | undefined;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!child || !isAlive(child.pid ?? 0)) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  return {
    name: `supervisor ${execFileSync(PYTHON, [...found.args, '--version'], { env: { PYTHONPATH: found.path }, encoding: 'utf8' }).trim()}`,
    async start() {
      const env = { PATH: process.env['PATH'], PYTHONPATH: found.path };
      child = spawn(PYTHON, [...found.args, '-c', config], { env, stdio: 'ignore' });
      while (!(await rpc('getState').catch(() => null))) await pause(1);
    },
    // The services stand in its configuration.
    define: async () => undefined,
    pids: () => [child?.pid ?? 0],
    startOne: () => rpc('startProcess', 'one'),
    pidOfOne: async () => Number(member(await rpc('getProcessInfo', 'one'), 'pid')),
    stopOne: () => rpc('stopProcess', 'one'),
    async noticesEnd() {
      while (member(await rpc('getProcessInfo', 'one'), 'statename') === 'RUNNING') await pause(1);
    },
    startAll: () => rpc('startProcessGroup', 'bench'),
    startTalkers: () => rpc('startProcessGroup', 'talkers'),
    status: () => rpc('getAllProcessInfo'),
    async running() {
      const rows = (await rpc('getAllProcessInfo')).split('</struct>');
      return rows
        .filter((row) => member(row, 'name') !== 'one' && member(row, 'statename') === 'RUNNING')
        .map((row) => Number(member(row, 'pid')));
    },
    kill: () => end('SIGKILL'),
    end: () => end('SIGTERM'),
  };
};
