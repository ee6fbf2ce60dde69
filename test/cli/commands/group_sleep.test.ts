// `berth sleep --group` and `berth wake --group` in a project's folder name its services as the other commands do.
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

const SERVER = `exec ${JSON.stringify(process.execPath)} -e 'require("http").createServer((q, r) => r.end()).listen(process.env.PORT)'`;

it('berth sleep and wake of a group show the short names, and of a service without sleep how to add it', async () => {
  const daemon = await daemonOf();
  const cwd = folder();
  const web = { cmd: SERVER, port: 'auto', ready: 'tcp', sleep: { after: '15m' } };
  const plain = { cmd: 'exec sleep 100', port: null, ready: { exec: 'true' } };
  writeFileSync(`${cwd}/berth.yaml`, JSON.stringify({ name: 'shop', services: { web, plain } }));
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const run = (line: string) => berth(line.split(' '), { cwd, env });
  expect(await run('up')).toMatchObject({ code: 0 });
  expect(await run('sleep --group shop')).toMatchObject({ code: 0, stdout: 'web is sleeping\n' });
  const woken = await run('wake --group shop');
  expect(woken).toMatchObject({ code: 0, stdout: expect.stringMatching(/^web is running \(pid \d+\)\n$/) });
  const refused = await run('sleep plain');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('in berth.yaml, `sleep: {after: 15m}`');
});
