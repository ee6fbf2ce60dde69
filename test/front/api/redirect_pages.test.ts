import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RedirectPages } from '../../../src/front/api/redirect_pages.ts';
import { fillDisk, smallDisk } from '../../kit/small_disk.ts';

it('a redirect page on a full disk fails with storage_full, and leaves no partial file', ({ skip }) => {
  const disk = smallDisk('64k');
  if (disk === undefined) return skip('no right to mount a small file system');
  const pages = new RedirectPages(disk);
  const filler = join(disk, 'filler');
  fillDisk(filler);
  expect(() => pages.write('code-1', 'http://127.0.0.1/')).toThrow(
    expect.objectContaining({ code: 'storage_full' }),
  );
  expect(readdirSync(disk, { recursive: true }).filter((name) => String(name).endsWith('.html'))).toEqual([]);
  rmSync(filler);
  expect(pages.write('code-1', 'http://127.0.0.1/')).toBe(join(disk, 'open', 'code-1.html'));
});
