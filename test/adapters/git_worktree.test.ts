// docs/reference.md "Stacks": the working tree of a folder, beside what the real git makes.
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderInMain, type WorkTree, workTreeOf } from '../../src/adapters/git_worktree.ts';
import { tempDir } from '../kit/actors.ts';

const git = (cwd: string, ...args: string[]): void =>
  void execFileSync('git', ['-c', 'user.email=me@localhost', '-c', 'user.name=me', ...args], {
    cwd,
    stdio: 'pipe',
  });

/** A repository called `name` with a linked working tree on the branch `login`. */
function linkedTree(name: string, ...kind: string[]): { main: string; linked: string } {
  const home = tempDir();
  const [first, main, linked] = [join(home, 'first'), join(home, name), join(home, 'linked')];
  mkdirSync(first);
  git(first, 'init', '-q', '-b', 'main');
  git(first, 'commit', '-q', '--allow-empty', '-m', 'first');
  git(home, 'clone', '-q', ...kind, first, main);
  git(main, 'worktree', 'add', '-q', '-b', 'login', linked);
  mkdirSync(join(linked, 'app'));
  return { main, linked };
}

it('a linked working tree names its main one, and has its own branch', () => {
  const { main, linked } = linkedTree('shop');
  expect(workTreeOf(join(linked, 'app'))).toEqual({ root: linked, branch: 'login', mainRoot: main });
  expect(workTreeOf(main)).toEqual({ root: main, branch: 'main', mainRoot: null });
  expect(folderInMain(join(linked, 'app'), workTreeOf(linked) as WorkTree)).toBe(join(main, 'app'));
});

it('the main working tree of a bare repository is called as that', () => {
  const { main, linked } = linkedTree('shop.git', '--bare');
  expect(workTreeOf(linked)?.mainRoot).toBe(main.replace(/\.git$/, ''));
});

it('a linked working tree keeps its main one after that was moved, although git itself refuses to work there', () => {
  const { main, linked } = linkedTree('shop');
  renameSync(main, `${main}-archive`);
  expect(() => git(linked, 'status')).toThrow();
  expect(workTreeOf(linked)).toEqual({ root: linked, branch: null, mainRoot: main });
});
