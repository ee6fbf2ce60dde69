// Sockets for notices in a folder that is renamed: docs/reference.md "Copies of the state directory".
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadLibc } from '../../src/adapters/process/libc.ts';
import { NoticeSockets } from '../../src/host/notice_sockets.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { afterThisTest } from '../kit/actors.ts';

it('programs that cannot be heard after a rename count as alive, and later ones are heard', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-notices-'));
  afterThisTest(() => rmSync(folder, { recursive: true }));
  const [old, now] = [join(folder, 'old'), join(folder, 'now')];
  mkdirSync(old);
  const sockets = new NoticeSockets(old, await loadLibc(), systemClock);
  sockets.open('before', false);
  const isAlive = async (run: string) =>
    (await sockets.notified(run, { is: 'watchdog', withinMs: -1 }, 0)).holds;
  expect(await isAlive('before')).toBe(false);
  renameSync(old, now);
  sockets.moveTo(now);
  expect(sockets.open('after', false)).toBe(join(now, 'after.notify'));
  expect([await isAlive('before'), await isAlive('after')]).toEqual([true, false]);
  for (const run of ['before', 'after']) sockets.close(run);
  expect([existsSync(join(now, 'before.notify')), existsSync(join(now, 'after.notify'))]).toEqual([
    false,
    false,
  ]);
});
