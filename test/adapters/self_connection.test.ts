// In a network namespace with one port for outgoing connections, each of these reaches itself.
import { execFileSync, spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { bundle } from '../kit/bundle.ts';

const PORT = 41_500;
const inNamespace = (script: string): [string, string[]] => [
  'unshare',
  [
    '-rn',
    'sh',
    '-c',
    `ip link set lo up && echo ${PORT} ${PORT} >/proc/sys/net/ipv4/ip_local_port_range && ${script}`,
  ],
];
const hasNamespaces = spawnSync(...inNamespace('true')).status === 0;
const reason = hasNamespaces ? '' : ' (skipped: no network namespaces)';

it.skipIf(!hasNamespaces)(
  `a connection that reaches itself counts as refused, and frees the port${reason}`,
  async () => {
    const child = await bundle('test/adapters/self_connection_child.ts');
    const [command, args] = inNamespace(`exec "${process.execPath}" "${child}" ${PORT}`);
    const refused = 'connection refused: nothing listens there';
    expect(execFileSync(command, args, { encoding: 'utf8' }).trim().split('\n')).toEqual([
      `tcp://127.0.0.1:PORT: ${refused}`,
      `tcp://localhost:PORT: ${refused}`,
      `http://127.0.0.1:PORT: ${refused}`,
      `https://127.0.0.1:PORT: ${refused}`,
      'dial: nothing listens there',
      'listen: done',
    ]);
  },
);
