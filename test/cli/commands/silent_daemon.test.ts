// `berth doctor`, `daemon stop` and `daemon restart` with a daemon that stands still.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { processRow } from '../../../src/adapters/process/process_table.ts';
import { DOCTOR_CHECKS } from '../../../src/cli/commands/doctor_checks.ts';
import { createCommandContext } from '../../../src/cli/kit/context.ts';
import { findLocalDaemon } from '../../../src/client/local_daemon.ts';
import { statePaths } from '../../../src/settings/state_paths.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { type Daemon, hostPid } from '../../kit/daemon.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { berth, cleanEnv, daemonOf, folder, type Ran } from '../berth_process.ts';

async function suspend({ pid }: Pick<Daemon, 'pid'>): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await eventually(() => processRow(pid)?.state === 'T');
}

const run = (daemon: Daemon, line: string): Promise<Ran> => {
  const env = { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile };
  return berth(line.split(' '), { env: cleanEnv(folder(), env) });
};

it('doctor says that the daemon is suspended', async () => {
  const daemon = await daemonOf();
  await suspend(daemon);
  const ran = await run(daemon, 'doctor');
  process.kill(daemon.pid, 'SIGCONT');
  expect(ran.code).toBe(1);
  expect(ran.stdout).toContain(
    `✗ the daemon (pid ${daemon.pid}) is suspended, as by Ctrl-Z\n    \`kill -CONT ${daemon.pid}\` continues it.`,
  );
});

it.each(['ps', 'daemon start', 'daemon status', 'logs -f'])(
  'berth %s says at once that the daemon is suspended',
  async (line) => {
    const daemon = await daemonOf();
    await suspend(daemon);
    const ran = await run(daemon, line);
    process.kill(daemon.pid, 'SIGCONT');
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toContain(
      `berth: the daemon (pid ${daemon.pid}) is suspended, as by Ctrl-Z\n\`kill -CONT ${daemon.pid}\` continues it.`,
    );
  },
);

it('the start of a daemon, and doctor, name a process host that is suspended', async () => {
  const daemon = await daemonOf({ config: '[shutdown]\nservices = "keep"\n' });
  await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'exec sleep 60' });
  await daemon.request('POST', '/v1/services/web/start');
  const pid = hostPid(daemon.stateDir);
  await suspend({ pid });
  const said = `the process host (pid ${pid}) is suspended, as by Ctrl-Z`;
  const running = await run(daemon, 'doctor');
  daemon.signal('SIGKILL');
  await daemon.exited;
  const alone = await run(daemon, 'doctor');
  const started = await run(daemon, 'daemon start');
  process.kill(pid, 'SIGCONT');
  expect(running.stdout).toContain(`It (pid ${pid}) is suspended`);
  expect(alone.stdout).toContain(`✗ ${said}\n    \`kill -CONT ${pid}\` continues it.`);
  expect(started.code).not.toBe(0);
  expect(started.stderr).toContain(`${said}: \`kill -CONT ${pid}\` continues it.`);
  const next = await daemonOf({ stateDir: daemon.stateDir });
  await next.request('DELETE', '/v1/services/web');
});

it('doctor sends no second request to a daemon that lets the first one wait', async () => {
  let requests = 0;
  const server = createServer(() => {
    requests += 1;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const stateDir = folder();
  const { pid, startTicks } = must(processRow(process.pid));
  const record = { pid, port, startTime: startTicks };
  writeFileSync(statePaths(stateDir).addressFile, JSON.stringify(record));
  const config = `${stateDir}/config.toml`;
  writeFileSync(config, '');
  const options = { format: 'table', url: undefined, stateDir, config } as const;
  const local = await findLocalDaemon({ ...options, deadlineMs: 200 });
  const context = { ...createCommandContext(options).context, local: async () => local };
  const findings = [];
  for (const check of DOCTOR_CHECKS) findings.push(...(await check(context)));
  expect(findings.map(({ about }) => about).join('\n')).toContain(`the daemon (pid ${pid}) does not answer`);
  expect(requests).toBe(1);
});

it('stop ends a suspended daemon, and restart replaces it', async () => {
  const daemon = await daemonOf();
  await suspend(daemon);
  try {
    expect(await run(daemon, 'daemon restart')).toMatchObject({ code: 0 });
    const { pid } = JSON.parse((await run(daemon, 'daemon status --json')).stdout);
    expect(pid).not.toBe(daemon.pid);
    await suspend({ pid });
    expect((await run(daemon, 'daemon stop')).stdout).toContain(`the daemon has ended (pid ${pid})`);
  } finally {
    await run(daemon, 'daemon stop');
  }
});
