// `berth wait` of tasks: docs/reference.md "Tasks".
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

/** A task in a folder of its own that ends with the code in its file `go`, once that is there. */
const GATED = 'until [ -s go ]; do sleep 0.02; done; echo last words; exit $(cat go)';

async function taskOf(fields: object = {}) {
  const daemon = await daemonOf();
  const home = folder();
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const spec = { name: 'work', kind: 'task', port: null, cwd: home, cmd: GATED, ...fields };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  return {
    run: (line: string) => berth(line.split(' '), { env }),
    /** Lets the task end with this code. */
    end: (code: number) => writeFileSync(join(home, 'go'), String(code)),
  };
}

it('a task is waited for until it has completed', async () => {
  const { run, end } = await taskOf();
  expect(await run('start work --no-wait')).toMatchObject({ code: 0 });
  const early = await run('wait work --timeout 200ms');
  expect([early.code, early.stdout]).toEqual([7, '']);
  expect(early.stderr).toContain('is running, not completed, after 200ms');
  const waited = run('wait work');
  end(0);
  expect(await waited).toMatchObject({ code: 0, stdout: '✓ work is completed\n' });
  expect(await run('wait work')).toMatchObject({ code: 0, stdout: '✓ work is completed\n' });
});

it('the wait for a task that fails ends with it, and shows its last lines', async () => {
  const { run, end } = await taskOf({ schedule: '0 3 1 1 *' });
  await run('start work --no-wait');
  const waited = run('wait work');
  end(3);
  const failed = {
    code: 7,
    stdout: '',
    stderr: expect.stringContaining('is crashed (exit 3), not completed'),
  };
  expect(await waited).toMatchObject(failed);
  // Also between the runs of its schedule.
  const after = await run('wait work');
  expect(after).toMatchObject(failed);
  expect(after.stderr).toContain('last words');
  expect(await run('wait work --for stopped')).toMatchObject({ code: 0 });
});

it('the wait for a task goes on while its restart policy starts it again', async () => {
  const cmd = '[ -e once ] && exit 0; touch once; exit 1';
  const { run } = await taskOf({ cmd, restart: { policy: 'on-failure', minMs: 2_000 } });
  await run('start work --no-wait');
  await run('wait work --for stopped');
  expect(await run('wait work')).toMatchObject({ code: 0, stdout: '✓ work is completed\n' });
});
