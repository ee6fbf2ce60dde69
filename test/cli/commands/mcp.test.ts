// `berth mcp` with input that no client should send: docs/reference.md "MCP over stdio".
import { expect, it } from 'vitest';
import { MIB } from '../../../src/settings/limits.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

async function mcp(input: string) {
  const daemon = await daemonOf();
  const args = ['mcp', '--state-dir', daemon.stateDir, '--config', daemon.configFile];
  return berth(args, { input, env: cleanEnv(folder()) });
}

it('reports lines that are no messages in a line each, and ends with stdin', async () => {
  const { code, stdout, stderr } = await mcp('not JSON\n[1, 2]\n{"jsonrpc":"2.0","id":{},"method":"ping"}\n');
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  const report = 'berth mcp: ignored a line that is not a message of JSON-RPC 2.0\n';
  expect(stderr).toBe(report.repeat(2));
});

it('fails after a line that is too long to read', async () => {
  const { code, stderr } = await mcp('x'.repeat(11 * MIB));
  expect(stderr).toContain('exceeded maximum size of 10485760 bytes');
  expect(code).toBe(1);
});
