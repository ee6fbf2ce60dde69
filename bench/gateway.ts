// Requests through the gateway to an agent's server, next to the same requests straight to the agent's port.
// Their processor cost is compared with a relay that forwards bytes without parsing them.
import { withBareProcess } from './kit/bare_client.ts';
import { withDaemon } from './kit/daemon.ts';
import { type Benchmark, compare, cost, type Row } from './kit/harness.ts';
import { runHttpLoad } from './kit/http_load.ts';
import { cpuMs } from './kit/process_stats.ts';

const CONNECTIONS = 32;
const TURN_MS = 1_000;
const BODY_BYTES = 1_024;
/** Another daemon of the machine may have the usual one. */
const ANY_GATEWAY_PORT = '[gateway]\nport = 0\n';
const SERVER = `require("http").createServer((q,s)=>{s.setHeader("Content-Length",${BODY_BYTES});s.end("x".repeat(${BODY_BYTES}))}).listen(process.env.PORT,"127.0.0.1")`;

interface Agent {
  port: number;
  hostname: string;
  gatewayUrl: string;
}

const requestFor = (host: string): string =>
  `GET /page HTTP/1.1\r\nHost: ${host}\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n`;

async function run(): Promise<Row[]> {
  return withDaemon(async ({ ask, pid }) => {
    const agent = (await ask('POST', '/v1/agents/spinup', {
      name: 'page',
      cmd: `exec '${process.execPath}' -e '${SERVER}'`,
    })) as Agent;
    const through = new URL(agent.gatewayUrl);
    const direct = `127.0.0.1:${agent.port}`;
    // Wait until the agent's server listens.
    for (;;) {
      const isThere = await runHttpLoad(agent.port, requestFor(direct), 1, 10).catch(() => 0);
      if (isThere > 0) break;
    }
    const turn = (port: number, host: string) => () =>
      runHttpLoad(port, requestFor(host), CONNECTIONS, TURN_MS);
    const asked = turn(Number(through.port), through.host);
    const requests = await compare(`${CONNECTIONS} connections`, 'requests/s', {
      floor: turn(agent.port, direct),
      subject: asked,
      turns: 15,
    });
    /** Returns microseconds of processor time of `pid` per request of `work`. */
    const each = (pid: number, work: () => Promise<number>) => async (): Promise<number> => {
      const before = cpuMs(pid);
      const perSecond = await work();
      return ((cpuMs(pid) - before) * 1_000) / ((perSecond * TURN_MS) / 1_000);
    };
    const spent = await withBareProcess(async (relay) => {
      const port = await relay.ask('relay', { to: agent.port });
      return cost('processor time of a request', 'µs', {
        floor: each(relay.pid, turn(port, direct)),
        subject: each(pid, asked),
      });
    });
    return [requests, spent];
  }, ANY_GATEWAY_PORT);
}

export const gateway: Benchmark = {
  name: 'gateway',
  question: 'How many requests pass the gateway, next to asking the agent itself?',
  run,
};
