// Links and other things where the files of a log are expected: nothing is written beyond its folder, and
// the program's output goes on.
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { logEndOffset, readLog } from '../../src/logs/reader.ts';
import { LogWriter } from '../../src/logs/writer.ts';
import { tempDir } from '../kit/actors.ts';

const RUN = '00000000000000aa';
const LIMITS = { maxBytes: 1 << 20, keep: 5 };
const text = (folder: string): string => Buffer.from(readLog(folder, 0, 1_000).bytes).toString();

it.each(['out.log', 'out.idx', 'out.idx.new'])(
  'the writer does not write through a link named %s',
  (name) => {
    for (const leadsTo of ['something', 'nothing']) {
      const home = tempDir();
      const folder = join(home, 'web');
      const victim = join(home, 'victim');
      mkdirSync(folder);
      if (leadsTo === 'something') writeFileSync(victim, 'mine '.repeat(100));
      symlinkSync(victim, join(folder, name));
      const log = new LogWriter(folder, LIMITS, () => 1_000);
      log.append(1, RUN, Buffer.from('hello\n'));
      log.close();
      expect(text(folder)).toBe('hello\n');
      if (leadsTo === 'something') expect(readFileSync(victim, 'utf8')).toBe('mine '.repeat(100));
      else expect(() => readFileSync(victim)).toThrow('ENOENT');
    }
  },
);

it('a file in place of the folder is an empty log', () => {
  const logs = join(tempDir(), 'logs');
  writeFileSync(logs, 'no folder');
  const folder = join(logs, 'web');
  expect(logEndOffset(folder)).toBe(0);
});

it('the writer notices removed files also after the clock was set back', () => {
  const folder = join(tempDir(), 'web');
  let now = 10_000_000;
  const log = new LogWriter(folder, LIMITS, () => now);
  log.append(1, RUN, Buffer.from('one\n'));
  rmSync(folder, { recursive: true });
  now -= 3_600_000;
  log.append(1, RUN, Buffer.from('two\n'));
  log.close();
  expect(text(folder)).toContain('two\n');
});
