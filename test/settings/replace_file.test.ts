// The files of users on a real small disk that is full.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { replaceFile } from '../../src/settings/replace_file.ts';
import { tempDir } from '../kit/actors.ts';
import { fillDisk, smallDisk } from '../kit/small_disk.ts';

it('a full disk leaves the old file in place, and the file is replaced once there is room', ({ skip }) => {
  const disk = smallDisk('64k');
  if (disk === undefined) return skip('no right to mount a small file system');
  const [path, filler] = [join(disk, 'config.toml'), join(disk, 'filler')];
  writeFileSync(path, 'mine\n');
  fillDisk(filler);
  const text = 'x'.repeat(10_000);
  expect(() => replaceFile(path, text)).toThrow(`${path}: ENOSPC: no space left on device`);
  expect(readFileSync(path, 'utf8')).toBe('mine\n');
  expect(readdirSync(disk).sort()).toEqual(['config.toml', 'filler']);
  rmSync(filler);
  replaceFile(path, text);
  expect(readFileSync(path, 'utf8')).toBe(text);
});

it('replacing a file keeps its mode and the links to it, unless a mode is given', () => {
  const folder = tempDir();
  mkdirSync(join(folder, 'dotfiles'));
  const [file, link] = [join(folder, 'dotfiles', 'settings.json'), join(folder, 'settings.json')];
  writeFileSync(file, '1');
  chmodSync(file, 0o640);
  symlinkSync(file, link);
  replaceFile(link, '2');
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readFileSync(file, 'utf8')).toBe('2');
  expect(statSync(file).mode & 0o777).toBe(0o640);
  replaceFile(link, '3', 0o600);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  replaceFile(join(folder, 'new'), '4', 0o600);
  expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).sort()).toEqual(['dotfiles', 'new', 'settings.json']);
});

it('nothing but a file is replaced, so that a link to a device leaves the device', () => {
  const folder = tempDir();
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  symlinkSync(fifo, join(folder, 'link'));
  symlinkSync(folder, join(folder, 'folder'));
  for (const [name, kind] of [
    ['link', 'a FIFO'],
    ['folder', 'a folder'],
  ] as const)
    expect(() => replaceFile(join(folder, name), 'x')).toThrow(
      `${join(folder, name)}: it is ${kind}, and not a file`,
    );
  expect(statSync(fifo).isFIFO()).toBe(true);
  expect(readdirSync(folder).sort()).toEqual(['fifo', 'folder', 'link']);
});
