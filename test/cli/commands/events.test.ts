// `berth events` in a project's folder: short names, and only what happens in its stack.
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

const TASK = 'services:\n  web:\n    cmd: "true"\n    kind: task\n';
const ENDED = /^\S+\s+service\.completed\s+(\S+) completed in/gm;

const endedIn = (text: string): (string | undefined)[] => [...text.matchAll(ENDED)].map(([, name]) => name);

it('berth events shows and takes the names of the stack, also of a removed service, and -A those of all', async () => {
  const daemon = await daemonOf();
  const [mine, other] = [folder(), folder()];
  writeFileSync(`${mine}/berth.yaml`, `name: mine\n${TASK}`);
  writeFileSync(`${other}/berth.yaml`, `name: other\n${TASK}`);
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const run = async (cwd: string, line: string) => {
    const ran = await berth(line.split(' '), { cwd, env });
    expect(ran).toMatchObject({ code: 0 });
    return ran;
  };
  await run(other, 'up');
  await run(mine, 'up');

  for (const line of ['events --past', 'events --past web'])
    expect(endedIn((await run(mine, line)).stdout), line).toEqual(['web']);
  expect(endedIn((await run(mine, 'events --past -A')).stdout)).toEqual(['other--web', 'mine--web']);
  expect(endedIn((await run(mine, 'events --past other--web')).stdout)).toEqual(['other--web']);

  await run(mine, 'rm web');
  expect(endedIn((await run(mine, 'events --past web')).stdout)).toEqual(['web']);

  // A stack without services is not all services.
  expect(endedIn((await run(mine, 'events --past')).stdout)).toEqual(['web']);

  // The replay has the other stack's events first, then what this one's removal ended with.
  const followed = await berth(['events', '--since-id', '0'], {
    cwd: mine,
    env,
    onStdout: (text, kill) => {
      if (text.includes('service.removed')) kill('SIGINT');
    },
  });
  expect(endedIn(followed.stdout)).toEqual(['web']);

  const mistyped = await berth(['events', 'wbe'], {
    cwd: mine,
    env,
    onStderr: (text, kill) => {
      if (text.includes('wbe')) kill('SIGINT');
    },
  });
  expect(mistyped.stderr).toBe(
    'warning: there is no service wbe now; its events are shown once it is registered\n',
  );
});
