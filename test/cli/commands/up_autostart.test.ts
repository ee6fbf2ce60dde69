// `berth up` that starts the daemon, whose `autostart` begins with the registrations from before.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, folder } from '../berth_process.ts';

it('up applies a change to a service that the new daemon starts with its old registration', async () => {
  const cwd = folder();
  const config = join(folder(), 'config.toml');
  writeFileSync(config, 'port = 0\n[gateway]\nport = 0\n');
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: join(folder(), 'state'), BERTH_CONFIG: config });
  const run = (...args: string[]) => berth(args, { cwd, env });
  const edit = (word: string): void =>
    writeFileSync(
      join(cwd, 'berth.yaml'),
      `services:\n  web: {cmd: "echo ${word}; exec sleep 600", port: null, autostart: true, ready: {log: ${word}}}\n`,
    );
  try {
    edit('word-0');
    expect(await run('up')).toMatchObject({ code: 0 });
    for (const word of ['word-1', 'word-2', 'word-3']) {
      expect(await run('daemon', 'stop')).toMatchObject({ code: 0 });
      edit(word);
      const up = await run('up');
      expect(up, up.stdout + up.stderr).toMatchObject({ code: 0 });
      const web = JSON.parse((await run('status', 'web', '--json')).stdout);
      expect(web).toMatchObject({ status: 'running', stale: false });
      expect((await run('logs', 'web', '-n', '1', '--raw')).stdout).toBe(`${word}\n`);
    }
  } finally {
    await run('daemon', 'stop');
  }
});
