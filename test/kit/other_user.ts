// Programs of another user, which only root can start.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterThisTest } from './actors.ts';
import { must } from './must.ts';

/** `nobody`, on every Linux. */
export const OTHER_UID = 65_534;
export const OTHER_USER = 'user nobody';
/** Whether this process can start programs of other users. */
export const canBecomeOthers = process.getuid?.() === 0;

const SERVER = `const [host, port, greeting] = process.argv.slice(1);
require('node:net').createServer((socket) => {
  socket.on('error', () => {});
  socket.once('data', () => socket.end(greeting));
}).listen({ host, port: Number(port), ipv6Only: true }, function () { console.log(this.address().port) })`;

export interface ForeignListener {
  port: number;
  pid: number;
  /** Resolves when the port is free again. */
  end(): Promise<void>;
}

/** A server of another user on `host`; port 0: any free one. It answers whatever it hears with `greeting`. */
export async function listenAsOther(
  host: string,
  port: number,
  greeting = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
): Promise<ForeignListener> {
  const child = spawn(process.execPath, ['-e', SERVER, host, String(port), greeting], {
    uid: OTHER_UID,
    gid: OTHER_UID,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  afterThisTest(end);
  const [text] = await Promise.race([
    once(child.stdout, 'data'),
    ended.then(() => {
      throw new Error(`nobody can listen on ${host}`);
    }),
  ]);
  return { port: Number(text), pid: must(child.pid), end };
}
