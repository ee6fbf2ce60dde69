// The door of a service that may sleep: requests and bytes through it next to the port behind it, and a wake
// by a connection next to the start of the same service without a door.
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { withBareProcess } from './kit/bare_client.ts';
import { IDLE, startDaemon, withDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, compare, cost, type Row } from './kit/harness.ts';
import { runHttpLoad } from './kit/http_load.ts';
import { cpuMs } from './kit/process_stats.ts';

const MIB = 1024 * 1024;
const BULK_MIB = 256;
const CONNECTIONS = 32;
const TURN_MS = 1_000;
const BODY_BYTES = 1_024;
const TURNS = 15;
/** Answers HTTP, sends `BULK_MIB` to a client that sends `down`, and counts what follows `up`. */
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

/** Sends `parts` and resolves with the seconds until `enough` bytes have arrived. */
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

/** Whether a process listens on the port. */
const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      resolve(true);
      socket.destroy();
    });
    socket.on('error', () => resolve(false));
  });

/** Moves `BULK_MIB` in one direction; resolves with the seconds that it took. */
type Bulk = (port: number) => Promise<number>;
const sent = Buffer.alloc(BULK_MIB * MIB);
const BULKS: Record<string, Bulk> = {
  down: (port) => transfer(port, [Buffer.from('down')], BULK_MIB * MIB),
  up: (port) => transfer(port, [Buffer.from('up'), sent], 4),
};

/**
 * MiB per second of processor time of the busiest of `processes`: the throughput if each had a core of its
 * own, whatever else uses the machine.
 */
async function perCore(bulk: () => Promise<unknown>, processes: readonly number[]): Promise<number> {
  const before = processes.map((pid) => cpuMs(pid));
  await bulk();
  const spent = processes.map((pid, index) => cpuMs(pid) - (before[index] ?? 0));
  return (BULK_MIB * 1_000) / Math.max(...spent);
}

interface Ends {
  /** The port of the door, that of the service behind it, and of a relay in front of the service. */
  door: number;
  direct: number;
  relay: number;
  daemonPid: number;
  servicePid: number;
}

async function bulkRows({ door, direct, relay, daemonPid, servicePid }: Ends): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, bulk] of Object.entries(BULKS)) {
    const byClock = (port: number) => async () => BULK_MIB / (await bulk(port));
    const ends = [process.pid, servicePid];
    const rates = {
      [name]: {
        floor: () => perCore(() => bulk(direct), ends),
        subject: () => perCore(() => bulk(door), [...ends, daemonPid]),
      },
      [`${name}, by the clock`]: { floor: byClock(direct), subject: byClock(door) },
      [`${name}, next to a bare relay`]: { floor: byClock(relay), subject: byClock(door) },
    };
    for (const [row, sides] of Object.entries(rates))
      rows.push(await compare(row, 'MiB/s', { ...sides, turns: TURNS }));
  }
  return rows;
}

interface Service {
  port: number;
  innerPort: number;
  pid: number;
}

async function run(): Promise<Row[]> {
  return withDaemon(async ({ ask, pid: daemonPid }) => {
    const cmd = `exec '${process.execPath}' -e '${SERVER}'`;
    const register = async (name: string, more: object): Promise<number> => {
      const { port } = (await ask('POST', '/v1/services', { name, cmd, port: 0 })) as Service;
      const ready = `tcp://localhost:${port}`;
      await ask('POST', '/v1/services', { name, cmd, port, ready, ...more });
      return port;
    };
    await register('behind', { sleep: { afterMinutes: 60 } });
    const plainPort = await register('plain', {});
    await ask('POST', '/v1/services/behind/start');
    const { port, innerPort, pid: servicePid } = (await ask('GET', '/v1/services/behind')) as Service;
    const load = (to: number) => () => runHttpLoad(to, request(to), CONNECTIONS, TURN_MS);
    const name = `${CONNECTIONS} connections`;
    const requests = await compare(name, 'requests/s', {
      floor: load(innerPort),
      subject: load(port),
      turns: TURNS,
    });
    const bytes = await withBareProcess(async (bare) => {
      const relay = await bare.ask('relay', { to: innerPort });
      return bulkRows({ door: port, direct: innerPort, relay, daemonPid, servicePid });
    });
    const ms = async (work: () => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      await work();
      return performance.now() - began;
    };
    const firstAnswer = (of: number) => transfer(of, [Buffer.from(request(of))], BODY_BYTES);
    // The first answer of a new process is slow without a door too.
    const own = async (): Promise<number> => {
      await ask('POST', '/v1/services/plain/stop');
      return ms(async () => {
        await ask('POST', '/v1/services/plain/start');
        await firstAnswer(plainPort);
      });
    };
    const woken = async (): Promise<number> => {
      await ask('POST', '/v1/services/behind/sleep');
      return ms(() => firstAnswer(port));
    };
    const again = await reopened();
    return [
      requests,
      ...bytes,
      await cost('wake by a connection', 'ms', { floor: own, subject: woken, turns: TURNS }),
      again,
    ];
  });
}

/** From the line 'listening' of the next daemon to the open door; the floor is the start of that daemon. */
const reopened = (): Promise<Row> =>
  withFolder(async (folder) => {
    let daemon = await startDaemon(folder);
    const { ask } = daemon;
    const spec = { name: 'behind', cmd: IDLE, sleep: { afterMinutes: 60 } };
    const { port } = (await ask('POST', '/v1/services', { ...spec, port: 0 })) as Service;
    await ask('POST', '/v1/services/behind/sleep');
    const next = async (): Promise<void> => {
      await daemon.kill();
      daemon = await startDaemon(folder);
    };
    const takes = async (): Promise<number> => {
      await next();
      const began = performance.now();
      while (!(await isTaken(port))) await pause(1);
      return performance.now() - began;
    };
    try {
      const floor = async (): Promise<number> => {
        await next();
        return daemon.startMs;
      };
      return await cost('open after the next daemon', 'ms', { floor, subject: takes, turns: 5 });
    } finally {
      await daemon.end();
    }
  });

export const door: Benchmark = {
  name: 'door',
  question: 'What does the door of a service cost, and what does a wake add to its own start?',
  run,
};
