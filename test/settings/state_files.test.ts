// Odd things in the state directory and around it: docs/reference.md "State directory".
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runningDaemon } from '../../src/adapters/process/running_daemon.ts';
import { readLog } from '../../src/logs/reader.ts';
import { LogWriter } from '../../src/logs/writer.ts';
import { openStateDir, readSecret } from '../../src/settings/state_dir.ts';
import {
  checkStateFiles,
  openRegularFile,
  readTextFile,
  readTextInput,
  StateFileError,
} from '../../src/settings/state_files.ts';
import { untrustedPart } from '../../src/settings/trusted_path.ts';
import { tempDir } from '../kit/actors.ts';

const makeFifo = (path: string): void => void execFileSync('mkfifo', [path]);

const ODD: readonly [what: string, make: (path: string) => void, said: RegExp][] = [
  ['a FIFO', makeFifo, /: is a FIFO, and not a/],
  ['a device', (path) => symlinkSync('/dev/zero', path), /: is a device, and not a/],
  ['a dangling link', (path) => symlinkSync('no/where', path), /: is a link that leads nowhere, and not a/],
  ['a folder', (path) => mkdirSync(path), /: is a folder, and not a file/],
];
const FILES = [
  ...['daemon.json', 'daemon.log', 'store.mdb', 'store.mdb-lock', 'store.copy', 'events/life-1.log'],
  ...[
    'events/unwritten',
    'cloud-events/events-1.jsonl',
    'host/ledger',
    'host/ledger.new',
    'host/lock',
    'host/host.log',
  ],
];

it.each(ODD)('%s in place of any state file is refused with one line that names it', (_, make, said) => {
  for (const file of FILES) {
    const state = tempDir();
    for (const folder of ['cloud-events', 'events', 'host', 'logs', 'runs']) mkdirSync(join(state, folder));
    checkStateFiles(state);
    make(join(state, file));
    expect(() => checkStateFiles(state)).toThrow(StateFileError);
    expect(() => checkStateFiles(state)).toThrow(said);
    expect(() => checkStateFiles(state)).toThrow(`${join(state, file)}: `);
  }
});

it('a file in place of a folder is refused, and links to the right kind of file are followed', () => {
  const state = tempDir();
  const elsewhere = tempDir();
  mkdirSync(join(elsewhere, 'logs'));
  writeFileSync(join(elsewhere, 'store.mdb'), '');
  symlinkSync(join(elsewhere, 'logs'), join(state, 'logs'));
  symlinkSync(join(elsewhere, 'store.mdb'), join(state, 'store.mdb'));
  checkStateFiles(state);
  writeFileSync(join(state, 'runs'), '');
  expect(() => checkStateFiles(state)).toThrow(/runs: is a file, and not a folder: remove it/);
});

it('a reader does not wait for the other side of a FIFO', () => {
  const state = tempDir();
  const fifo = join(state, 'daemon.json');
  makeFifo(fifo);
  expect(runningDaemon(state)).toBeUndefined();
  expect(() => readSecret(fifo)).toThrow(/is no file of this user/);
  expect(() => openRegularFile(fifo, constants.O_RDONLY)).toThrow(/is a FIFO, and not a file/);
  expect(() => openRegularFile(fifo, constants.O_WRONLY)).toThrow(/ENXIO/);
  expect(() => openRegularFile(state, constants.O_RDONLY)).toThrow(/is a folder, and not a file/);
});

it.each(ODD)('%s in place of a log loses that log only', (_, make) => {
  for (const name of ['out.log', 'out.idx', 'out.idx.new']) {
    const folder = join(tempDir(), 'web');
    mkdirSync(folder);
    make(join(folder, name));
    const writer = new LogWriter(folder, { maxBytes: 1e9, keep: 5 }, () => 0);
    writer.append(1, '0123456789abcdef', Buffer.from('one\n'));
    writer.close();
    const { bytes } = readLog(folder, 0, 1_000);
    expect(writer.dropped + bytes.length).toBe(4);
  }
});

it('a text file of others is read up to its size limit', () => {
  const file = join(tempDir(), 'berth.yaml');
  writeFileSync(file, 'é'.repeat(524_288));
  expect(readTextFile(file)).toHaveLength(524_288);
  writeFileSync(file, 'x'.repeat(1_048_577));
  expect(() => readTextFile(file)).toThrow('it is larger than 1048576 bytes');
  expect(() => readTextFile('/dev/zero')).toThrow('it is larger than 1048576 bytes');
});

it('a FIFO, a socket or a folder is refused where a text file is read without waiting', async () => {
  const folder = tempDir();
  const fifo = join(folder, 'fifo');
  makeFifo(fifo);
  expect(() => readTextFile(fifo)).toThrow('it is a FIFO, and not a file');
  expect(() => readTextFile(folder)).toThrow('it is a folder, and not a file');
  const socket = join(folder, 'socket');
  const server = createServer().listen(socket);
  await once(server, 'listening');
  expect(() => readTextFile(socket)).toThrow('it is a socket, and not a file');
  await expect(readTextInput(socket)).rejects.toThrow('it is a socket, and not a file');
  server.close();
  expect(readTextFile('/dev/null')).toBe('');
  expect(await readTextInput('/dev/null')).toBe('');
  await expect(readTextInput('/dev/zero')).rejects.toThrow('it is larger than 1048576 bytes');
});

it('a FIFO named by the user is read to its end, once it has a writer', async () => {
  const fifo = join(tempDir(), 'fifo');
  makeFifo(fifo);
  const text = readTextInput(fifo);
  const writer = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  writeSync(writer, 'one ');
  writeSync(writer, 'two');
  closeSync(writer);
  expect(await text).toBe('one two');
});

it('a parent folder that others can write to is refused, unless it is sticky', () => {
  const above = join(tempDir(), 'above');
  const state = join(above, 'berth');
  mkdirSync(above);
  openStateDir(state);
  chmodSync(above, 0o777);
  expect(untrustedPart(state)).toBe(`others can write to ${above}`);
  expect(() => openStateDir(state)).toThrow(
    `${state}: cannot be the state directory: others can write to ${above}`,
  );
  chmodSync(above, 0o1777);
  openStateDir(state);
  chmodSync(above, 0o755);
  rmSync(state, { recursive: true });
  openStateDir(state);
});

it.runIf(process.getuid?.() === 0)('a parent folder or a link of another user is refused', async () => {
  const { lchownSync } = await import('node:fs');
  const home = tempDir();
  const theirs = join(home, 'theirs');
  mkdirSync(join(theirs, 'deep', 'berth'), { recursive: true, mode: 0o700 });
  chownSync(theirs, 12_345, 12_345);
  expect(() => openStateDir(join(theirs, 'deep', 'berth'))).toThrow(
    /theirs belongs to another user \(uid 12345\)/,
  );
  chownSync(theirs, 0, 0);
  const link = join(home, 'link');
  symlinkSync('theirs/deep', link);
  openStateDir(join(link, 'berth'));
  lchownSync(link, 12_345, 12_345);
  expect(() => openStateDir(join(link, 'berth'))).toThrow(/link belongs to another user \(uid 12345\)/);
  expect(untrustedPart(join(home, 'none', 'yet'))).toBeNull();
  symlinkSync('loop', join(home, 'loop'));
  expect(untrustedPart(join(home, 'loop', 'x'))).toMatch(/too many links/);
});
