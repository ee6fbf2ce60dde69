import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mountOnTheWay, servedMounts, unansweredReason } from '../../src/adapters/answering_path.ts';
import { tempDir } from '../kit/actors.ts';
import { deadMount } from '../kit/dead_mount.ts';

describe('the mounts that may not answer', () => {
  it('are those of a server or another process, with their real names', () => {
    const table = join(tempDir(), 'mountinfo');
    writeFileSync(
      table,
      [
        '22 27 0:21 / /proc rw,relatime - proc proc rw',
        '27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw',
        '60 27 0:60 / /home/me/my\\040files rw,relatime shared:9 master:2 - fuse.sshfs me@host: rw,user_id=1',
        '61 27 0:61 /export /srv/nfs rw - nfs4 server:/export rw,vers=4.2',
        '62 27 0:62 / /run/lock rw - tmpfs fuse.sshfs rw',
        '',
      ].join('\n'),
    );
    expect([...servedMounts(table)]).toEqual(['/home/me/my files', '/srv/nfs']);
    expect(servedMounts('/nowhere')).toEqual(new Set());
  });

  it('are found on the way of a path, also by links, and are not entered', () => {
    const folder = tempDir();
    const mount = join(folder, 'mount');
    const mounts = new Set([mount]);
    for (const name of ['mount', 'other']) mkdirSync(join(folder, name));
    symlinkSync('mount/inner', join(folder, 'relative'));
    symlinkSync(join(folder, 'relative'), join(folder, 'other', 'absolute'));
    symlinkSync('loop', join(folder, 'loop'));
    symlinkSync('../mount', join(folder, 'other', 'up'));
    const found = (path: string) => mountOnTheWay(join(folder, path), mounts);
    for (const path of ['mount', 'mount/a/b', 'relative/x', 'other/absolute', 'other/up', 'other/../mount'])
      expect([path, found(path)]).toEqual([path, mount]);
    for (const path of ['', 'mountain', 'other', 'other/none', 'loop/x', 'none/mount'])
      expect([path, found(path)]).toEqual([path, undefined]);
  });
});

it('a path on a file system answers until its server is gone', async ({ skip }) => {
  const mount = await deadMount();
  if (!mount) return skip('no right to mount a file system of FUSE');
  const [proj, none, local] = [join(mount.path, 'proj'), join(mount.path, 'none'), tempDir()];
  for (const path of [proj, none, local]) expect(await unansweredReason(path)).toBeNull();
  await mount.die();
  const reason = (path: string) => unansweredReason(path, { timeoutMs: 100 });
  const expected = `${proj} is on ${mount.path}, a file system that does not answer`;
  expect(await Promise.all([reason(proj), reason(proj), reason(local)])).toEqual([expected, expected, null]);
  expect(await reason(proj)).toBe(expected);
});
