import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LogEnds } from '../../src/host/log_ends.ts';
import { tempDir } from '../kit/actors.ts';

const NOW = Date.now();

it('the end of a removed log is known to later hosts, and forgotten after a month', () => {
  const folder = join(tempDir(), 'log-ends');
  const first = new LogEnds(folder, NOW);
  expect(first.of('web')).toBe(0);
  first.note('web', 70);
  first.note('web', 7);
  first.note('empty', 0);
  first.note('run-0123456789abcdef', 9);
  expect(readdirSync(folder)).toEqual(['web']);
  const day = 24 * 3_600;
  utimesSync(join(folder, 'web'), NOW / 1_000 - 29 * day, NOW / 1_000 - 29 * day);
  expect(new LogEnds(folder, NOW).of('web')).toBe(7);
  expect(new LogEnds(folder, NOW + 2 * day * 1_000).of('web')).toBe(0);
});

it('what is in the place of its files or its folder neither blocks nor fails anything', () => {
  const folder = join(tempDir(), 'log-ends');
  const outside = join(folder, '..', 'outside');
  mkdirSync(folder);
  writeFileSync(outside, '5');
  execFileSync('mkfifo', [join(folder, 'fifo')]);
  symlinkSync(outside, join(folder, 'link'));
  mkdirSync(join(folder, 'folder'));
  writeFileSync(join(folder, 'rubbish'), '-1e999');
  const ends = new LogEnds(folder, NOW);
  for (const name of ['fifo', 'link', 'folder']) ends.note(name, 3);
  for (const name of ['fifo', 'folder', 'rubbish']) expect([name, ends.of(name)]).toEqual([name, 0]);
  expect(readFileSync(outside, 'utf8')).toBe('5');
  const file = new LogEnds(outside, NOW);
  file.note('web', 3);
  expect(file.of('web')).toBe(0);
});
