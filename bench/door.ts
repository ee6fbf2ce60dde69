// The door of a service that may sleep: requests and bytes through it next to the port behind it, and a wake
// by a connection next to the start of the same service without a door.
import { connect } from 'node:net';
import { withDaemon } from './kit/daemon.ts';
import { type Benchmark, compare, cost, type Row } from './kit/harness.ts';
import { runHttpLoad } from './kit/http_load.ts';

const MIB = 1024 * 1024;
const BULK_MIB = 256;
const CONNECTIONS = 32;
const TURN_MS = 1_000;
const BODY_BYTES = 1_024;
const TURNS = 15;
/** Answers HTTP, sends `BULK_MIB` to whoever says `down`, and counts what comes after `up`. */
const SERVER = `
const web = require("http").createServer((q,s)=>{s.setHeader("Content-Length",${BODY_BYTES});s.end("x".repeat(${BODY_BYTES}))});
const block = Buffer.alloc(${MIB / 4});
require("net").createServer((s)=>{s.on("error",()=>{});s.once("data",(first)=>{
  const word = first.toString("latin1",0,4);
  if (word === "down") { let left=${BULK_MIB * 4}; const more=()=>{while(left-->0) if(!s.write(block)) return; s.end()}; s.on("drain",more); more(); return }
  if (word.startsWith("up")) { let got=first.length; s.on("data",(b)=>{got+=b.length; if(got>=${BULK_MIB * MIB}) s.end("done")}); return }
  s.unshift(first); web.emit("connection",s);
})}).listen(process.env.PORT,"127.0.0.1")`;

const request = (port: number): string =>
  `GET /page HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n`;

/** Sends `parts` and resolves with the seconds until `enough` bytes have come. */
function transfer(port: number, parts: readonly Buffer[], enough: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    let bytes = 0;
    const callback = (length: number): boolean => {
      bytes += length;
      if (bytes < enough) return true;
      resolve((performance.now() - began) / 1_000);
      socket.destroy();
      return false;
    };
    const onread = { buffer: Buffer.alloc(MIB / 4), callback };
    const socket = connect({ port, host: '127.0.0.1', onread });
    socket.on('error', reject);
    for (const part of parts) socket.write(part);
  });
}

const down = (port: number) => async (): Promise<number> =>
  BULK_MIB / (await transfer(port, [Buffer.from('down')], BULK_MIB * MIB));
const sent = Buffer.alloc(BULK_MIB * MIB);
const up = (port: number) => async (): Promise<number> =>
  BULK_MIB / (await transfer(port, [Buffer.from('up'), sent], 4));

interface Service {
  port: number;
  innerPort: number;
}

async function run(): Promise<Row[]> {
  return withDaemon(async ({ ask }) => {
    const cmd = `exec '${process.execPath}' -e '${SERVER}'`;
    const register = async (name: string, more: object): Promise<void> => {
      const { port } = (await ask('POST', '/v1/services', { name, cmd, port: 0 })) as Service;
      const ready = `tcp://localhost:${port}`;
      await ask('POST', '/v1/services', { name, cmd, port, ready, ...more });
    };
    await register('behind', { sleep: { afterMinutes: 60 } });
    await register('plain', {});
    await ask('POST', '/v1/services/behind/start');
    const { port, innerPort } = (await ask('GET', '/v1/services/behind')) as Service;
    const load = (to: number) => () => runHttpLoad(to, request(to), CONNECTIONS, TURN_MS);
    const name = `${CONNECTIONS} connections`;
    const rows = [
      await compare(name, 'requests/s', { floor: load(innerPort), subject: load(port), turns: TURNS }),
      await compare('down', 'MiB/s', { floor: down(innerPort), subject: down(port), turns: TURNS }),
      await compare('up', 'MiB/s', { floor: up(innerPort), subject: up(port), turns: TURNS }),
    ];
    const ms = async (work: () => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      await work();
      return performance.now() - began;
    };
    const own = async (): Promise<number> => {
      await ask('POST', '/v1/services/plain/stop');
      return ms(() => ask('POST', '/v1/services/plain/start'));
    };
    const woken = async (): Promise<number> => {
      await ask('POST', '/v1/services/behind/sleep');
      return ms(() => transfer(port, [Buffer.from(request(port))], BODY_BYTES));
    };
    return [...rows, await cost('wake by a connection', 'ms', { floor: own, subject: woken, turns: TURNS })];
  });
}

export const door: Benchmark = {
  name: 'door',
  question: 'What does the door of a service cost, and what does a wake add to its own start?',
  run,
};
