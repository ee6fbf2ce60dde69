// The tools of agents over HTTP: reads of one service, next to the same reads without the protocol.
import http from 'node:http';
import { type Daemon, daemonRequester, withDaemon } from './kit/daemon.ts';
import { type Benchmark, compare, throughput } from './kit/harness.ts';

const IN_FLIGHT = 16;
const MEASURED_MS = 3_000;
const VERSION = '2026-07-28';
const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'get',
    arguments: { name: 'web' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': VERSION,
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});
const HEADERS = {
  'Content-Type': 'application/json',
  'Content-Length': Buffer.byteLength(CALL),
  Accept: 'application/json, text/event-stream',
  'MCP-Protocol-Version': VERSION,
  'MCP-Method': 'tools/call',
  'MCP-Name': 'get',
};

/** Calls the tool. Rejects if the answer is not about the service. */
const callOn = (agent: http.Agent, { port }: Daemon): Promise<void> =>
  new Promise((resolve, reject) => {
    const to = { agent, host: '127.0.0.1', port, method: 'POST', path: '/mcp', headers: HEADERS };
    const request = http.request(to, (answer) => {
      let got = '';
      answer.setEncoding('utf8');
      answer.on('data', (part) => {
        got += part;
      });
      answer.on('end', () =>
        got.includes('"name":"web"') ? resolve() : reject(new Error(`${answer.statusCode} ${got}`)),
      );
    });
    request.on('error', reject);
    request.end(CALL);
  });

export const mcp: Benchmark = {
  name: 'mcp',
  question: 'How many reads do the tools of agents answer?',
  run: () =>
    withDaemon(async (daemon) => {
      await daemon.ask('POST', '/v1/services', { name: 'web', cmd: 'exec sleep 1000', port: null });
      const plain = daemonRequester(daemon.port, IN_FLIGHT);
      const agent = new http.Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
      try {
        return [
          await compare('reads of one service', 'a second', {
            floor: () => throughput(() => plain.ask('GET', '/v1/services/web'), IN_FLIGHT, MEASURED_MS),
            subject: () => throughput(() => callOn(agent, daemon), IN_FLIGHT, MEASURED_MS),
            turns: 3,
          }),
        ];
      } finally {
        plain.close();
        agent.destroy();
      }
    }),
};
