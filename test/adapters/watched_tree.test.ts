// Real files, a real git, and the system's own limit.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WatchedTree } from '../../src/adapters/watched_tree.ts';
import type { WatchRequest, WatchState } from '../../src/protocol/watcher.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { WATCH } from '../../src/settings/limits.ts';
import { afterThisTest, tempDir } from '../kit/actors.ts';
import { bundle } from '../kit/bundle.ts';
import { run } from '../kit/child_program.ts';
import { eventually } from '../kit/eventually.ts';

/** Long enough that what a test does in one step is one report on a busy machine. */
const DEBOUNCE_MS = 150;

/** A folder that is watched, and what has been reported of it. */
class Watched {
  readonly cwd: string;
  readonly reports: string[][] = [];
  readonly states: WatchState[] = [];

  constructor(cwd: string, given: Partial<WatchRequest & { maxFolders: number }> = {}) {
    this.cwd = cwd;
    const tree = new WatchedTree({
      clock: systemClock,
      cwd,
      paths: ['**'],
      ignore: [],
      debounceMs: DEBOUNCE_MS,
      since: Date.now() + 60_000,
      onChange: (paths) => this.reports.push(paths.sort()),
      onState: (state) => this.states.push(state),
      onDefect: (error) => {
        throw error;
      },
      ...given,
    });
    afterThisTest(() => tree.close());
  }

  /** The number of watched folders, once everything has been read. */
  folders(): Promise<number> {
    return eventually(() => this.states.at(-1)?.folders);
  }

  write(...paths: string[]): void {
    for (const path of paths) {
      mkdirSync(dirname(join(this.cwd, path)), { recursive: true });
      writeFileSync(join(this.cwd, path), `${process.hrtime.bigint()}`);
    }
  }

  /** What is reported until `probe`, which is written last: at most four files, as a report names five. */
  async reported(probe = 'probe'): Promise<string[]> {
    const before = this.reports.length;
    this.write(probe);
    await eventually(
      () => this.reports.some((paths) => paths.includes(probe)),
      () => this.reports,
    );
    return this.reports
      .slice(before)
      .flat()
      .filter((path) => path !== probe);
  }
}

function tree(files: Record<string, string>): string {
  const root = tempDir();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });

describe('a watched tree', () => {
  it('reports that it is too large, and is watched up to the limit', async () => {
    const root = tree({ 'a/x': '', 'b/x': '', 'c/x': '', 'd/e/x': '' });
    const watched = new Watched(root, { maxFolders: 3 });
    expect(await watched.folders()).toBe(3);
    expect(watched.states.at(-1)?.trouble).toBe(
      'it has more than 3 folders: the others are not watched. Watch less',
    );
    expect(WATCH.maxFolders).toBe(50_000);
    watched.write('top');
    expect(await watched.reported()).toEqual(['top']);
  });

  it('reports what was written, added, renamed and removed, relative to its folder', async () => {
    const watched = new Watched(tree({ 'a.ts': '', 'lib/b.ts': '', 'lib/c.ts': '' }));
    await watched.folders();
    watched.write('a.ts', 'lib/new.ts');
    expect(await watched.reported()).toEqual(['a.ts', 'lib/new.ts']);
    rmSync(join(watched.cwd, 'lib/b.ts'));
    renameSync(join(watched.cwd, 'lib/c.ts'), join(watched.cwd, 'lib/d.ts'));
    expect(await watched.reported('lib/probe')).toEqual(['lib/b.ts', 'lib/c.ts', 'lib/d.ts']);
  });

  it('is that behind a link, with the rules of the repository there, also after the link has changed', async () => {
    const [first, second] = [tree({ 'app/a.ts': '' }), tree({ 'app/b.ts': '' })];
    for (const root of [first, second]) {
      git(root, 'init', '-q');
      writeFileSync(join(root, '.gitignore'), '*.out\n');
    }
    const link = join(tempDir(), 'current');
    symlinkSync(join(first, 'app'), link);
    const watched = new Watched(link, { paths: ['**', `${link}/**`] });
    expect(await watched.folders()).toBe(1);
    watched.write('a.ts', 'a.out');
    expect(await watched.reported()).toEqual(['a.ts']);

    symlinkSync(join(second, 'app'), `${link}.new`);
    renameSync(`${link}.new`, link);
    await eventually(() => watched.reports.some((paths) => paths.includes('b.ts')));
    watched.write('b.ts', 'b.out');
    expect(await watched.reported('second')).toEqual(['b.ts']);

    unlinkSync(link);
    symlinkSync('missing', link);
    await eventually(() => watched.states.at(-1)?.folders === 0);
    const before = watched.reports.length;
    renameSync(join(first, 'app'), join(dirname(link), 'missing'));
    await eventually(() => watched.reports.slice(before).some((paths) => paths.includes('a.ts')));
    watched.write('c.ts');
    expect(await watched.reported('third')).toEqual(['c.ts']);
  });

  it('notices files and folders with a newline in their names', async () => {
    const watched = new Watched(tree({ 'a.ts': '' }), { paths: ['**/*.ts', 'probe'] });
    await watched.folders();
    watched.write('one\ntwo.ts', 'in\nner/c.ts');
    expect(await watched.reported()).toEqual(['in\nner/c.ts', 'one\ntwo.ts']);
  });

  it('notices files in folders that are created later, moved in, and created again', async () => {
    const watched = new Watched(tree({ 'a.ts': '' }));
    await watched.folders();
    watched.write('new/deep/er/one.ts');
    expect(await watched.reported()).toContain('new/deep/er/one.ts');
    const outside = tree({ 'moved/two.ts': '' });
    renameSync(join(outside, 'moved'), join(watched.cwd, 'moved'));
    expect(await watched.reported('second')).toContain('moved/two.ts');
    rmSync(join(watched.cwd, 'new'), { recursive: true });
    watched.write('new/deep/er/one.ts');
    await watched.reported('third');
    watched.write('new/deep/er/again.ts');
    expect(await watched.reported('fourth')).toContain('new/deep/er/again.ts');
  });

  it('watches no folder in which nothing can match', async () => {
    const files = { 'src/a/b.ts': '', 'docs/x/y.md': '', 'lib/z.js': '', 'top.ts': '' };
    expect(await new Watched(tree(files), { paths: ['src/**/*.ts'] }).folders()).toBe(3);
    expect(await new Watched(tree(files), { paths: ['*.ts'] }).folders()).toBe(1);
    expect(await new Watched(tree(files), { paths: ['{lib,docs/x}/**'] }).folders()).toBe(6);
    const narrow = new Watched(tree(files), { paths: ['src', '*.ts'] });
    await narrow.folders();
    narrow.write('docs/x/y.md', 'lib/z.js', 'src/a/b.ts', 'src/any.thing', 'top.ts');
    expect((await narrow.reported('probe.ts')).sort()).toEqual(['src/a/b.ts', 'src/any.thing', 'top.ts']);
  });

  it('does not watch what each .gitignore, `ignore` and the defaults leave out', async () => {
    const root = tree({
      '.git/config': '',
      '.gitignore': 'out/\n*.log\n!keep.log\n',
      'node_modules/p/index.js': '',
      'out/x.js': '',
      'src/.gitignore': 'generated\n',
      'src/generated/g.ts': '',
      'src/main.ts': '',
      'data/d.csv': '',
    });
    const watched = new Watched(join(root), { ignore: ['data/', '*.tmp'] });
    // The root and src.
    expect(await watched.folders()).toBe(2);
    watched.write('node_modules/p/index.js', 'out/x.js', 'src/generated/g.ts', 'data/d.csv', '.git/HEAD');
    watched.write('a.log', 'src/a.log', 'a.tmp', 'src/main.ts~', 'src/main.ts', 'src/keep.log');
    expect((await watched.reported()).sort()).toEqual(['src/keep.log', 'src/main.ts']);
    // A service in a folder of the repository obeys the rules above it; `!` takes back what they say.
    const inner = new Watched(join(root, 'src'), { ignore: ['!generated'] });
    expect(await inner.folders()).toBe(2);
    inner.write('b.log', 'generated/h.ts');
    expect(await inner.reported()).toEqual(['generated/h.ts']);
  });

  it('follows changes of a .gitignore', async () => {
    const watched = new Watched(tree({ '.git/config': '', 'gen/a.ts': '', '.gitignore': '' }));
    expect(await watched.folders()).toBe(2);
    writeFileSync(join(watched.cwd, '.gitignore'), 'gen/\n');
    await eventually(() => watched.states.at(-1)?.folders === 1);
    watched.write('gen/a.ts');
    expect(await watched.reported()).not.toContain('gen/a.ts');
  });

  it('reports what changed after a given time before it was watched', async () => {
    const root = tree({ 'old.ts': '', 'node_modules/n.js': '' });
    // The clock of files is coarser than ours, and ours has no fractions: both sides of `since` need room.
    const old = Date.now();
    await eventually(() => Date.now() > old + 20);
    const since = Date.now();
    await eventually(() => Date.now() > since + 20);
    writeFileSync(join(root, 'new.ts'), '');
    writeFileSync(join(root, 'node_modules/n.js'), '');
    // Neither does an older time of change hide a file that was put there.
    writeFileSync(join(root, 'put.ts'), '');
    utimesSync(join(root, 'put.ts'), 1, 1);
    const watched = new Watched(root, { since });
    expect((await watched.reported()).sort()).toEqual(['new.ts', 'put.ts']);
  });

  it('is watched again when its folder exists again', async () => {
    const root = tree({ 'work/app/src/a.ts': '' });
    const cwd = join(root, 'work/app');
    const watched = new Watched(cwd, { paths: ['src/**', '../shared/*.ts'] });
    expect(await watched.folders()).toBe(3);
    rmSync(join(root, 'work'), { recursive: true });
    await eventually(() => watched.states.at(-1)?.folders === 0);
    watched.write('src/b.ts');
    expect(await watched.reported('src/probe')).toContain('src/b.ts');
    watched.write('../shared/c.ts');
    expect(await watched.reported('src/probe2')).toContain('../shared/c.ts');
    renameSync(cwd, join(root, 'elsewhere'));
    watched.write('src/d.ts');
    expect(await watched.reported('src/probe3')).toContain('src/d.ts');
  });

  it('does not follow links in cycles', async () => {
    const root = tree({ 'a/b.ts': '' });
    symlinkSync(root, join(root, 'a/self'));
    expect(await new Watched(root).folders()).toBe(2);
  });

  it('reports a checkout of 2,000 changed files once, with the first five', async () => {
    const root = tempDir();
    git(root, 'init', '-q', '-b', 'main');
    const fill = (text: string): void => {
      for (let index = 0; index < 2_000; index += 1) {
        const path = join(root, `d${index % 40}/f${index}.ts`);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text);
      }
    };
    fill('one');
    git(root, 'add', '-A');
    git(root, 'commit', '-qm', 'one');
    git(root, 'checkout', '-qb', 'other');
    fill('two');
    git(root, 'commit', '-qam', 'two');
    const watched = new Watched(root, { debounceMs: 300 });
    expect(await watched.folders()).toBe(41);
    git(root, 'checkout', '-q', 'main');
    const [ofCheckout] = await eventually(() => watched.reports.length > 0 && watched.reports);
    expect(ofCheckout).toHaveLength(5);
    // Nothing of it was left to tell.
    expect(await watched.reported()).toEqual([]);
  });
});

const canLimit = spawnSync('unshare', ['-Ur', 'sh', '-c', 'echo 9 > /proc/sys/user/max_inotify_watches']);

describe.skipIf(canLimit.status !== 0)(
  'a watched tree beyond the limit of the system (needs unshare)',
  () => {
    it('watches up to the limit, and says how to raise it', async () => {
      const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`d${index}/f.ts`, '']));
      const module = await bundle('test/adapters/watch_program.ts');
      const limit = 'echo 9 > /proc/sys/user/max_inotify_watches';
      const program = run('unshare', ['-Ur', 'sh', '-c', `${limit} && exec node ${module} ${tree(files)}`]);
      const state: WatchState = JSON.parse(await program.line((line) => line.includes('folders')));
      expect(state.folders).toBe(9);
      expect(state.trouble).toMatch(
        /ENOSPC.*9 folders are watched.*Raise the limit, `sysctl fs\.inotify\.max_user_watches`/,
      );
    });
  },
);
