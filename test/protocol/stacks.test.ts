// docs/reference.md "Stacks".
import { describe, expect, it } from 'vitest';
import {
  MAX_PROJECT_NAME,
  MAX_STACK_NAME,
  PROJECT_NAME_PATTERN,
  projectName,
  projectOfStack,
  STACK_NAME_PATTERN,
  shortName,
  slugOfStack,
  stackNames,
} from '../../src/protocol/stacks.ts';

describe('the name of a stack', () => {
  const place = { project: 'shop', path: '/home/me/shop' };

  it('is the name of its project in the main working tree', () => {
    expect(stackNames({ ...place, worktree: null })[0]).toBe('shop');
  });

  it.each([
    ['login', 'shop--login'],
    ['feature/Login_Page', 'shop--feature-login-page'],
    ['a--b', 'shop--a-b'],
    ['-x-', 'shop--x'],
  ])('is derived from the branch %s', (worktree, name) => {
    expect(stackNames({ ...place, worktree })[0]).toBe(name);
  });

  it('ends in four characters of a hash if it is cut, taken, or has no valid characters', () => {
    const [cut] = stackNames({ ...place, worktree: 'feature/a-very-long-name-of-a-branch' });
    expect(cut).toMatch(/^shop--feature-a-very-[0-9a-f]{4}$/);
    expect((slugOfStack(cut ?? '') ?? '').length).toBeLessThanOrEqual(20);
    expect(stackNames({ ...place, worktree: 'login' }).slice(1)).toEqual([
      expect.stringMatching(/^shop--login-[0-9a-f]{4}$/),
      expect.stringMatching(/^shop--login-[0-9a-f]{4}$/),
    ]);
    expect(stackNames({ ...place, worktree: '日本' })[0]).toMatch(/^shop--[0-9a-f]{4}$/);
    expect(stackNames({ ...place, worktree: null })[1]).toMatch(/^shop-[0-9a-f]{4}$/);
  });

  it('is valid for any name of folder and branch', () => {
    for (const text of ['x'.repeat(300), '-', '__', '.git', 'Ünï côdé', 'a-'.repeat(40), '0']) {
      const project = projectName(text);
      expect(project.length).toBeLessThanOrEqual(MAX_PROJECT_NAME);
      expect(project).toMatch(PROJECT_NAME_PATTERN);
      for (const name of stackNames({ project, path: '/p', worktree: text })) {
        expect(name).toMatch(STACK_NAME_PATTERN);
        expect(name.length).toBeLessThanOrEqual(MAX_STACK_NAME);
        expect(projectOfStack(name)).toBe(project);
      }
    }
  });

  it('is the prefix of the names of its services', () => {
    expect(shortName('shop--login--web', 'shop--login')).toBe('web');
    expect(shortName('shop--login--web', 'shop')).toBeNull();
    expect(shortName('web', 'shop')).toBeNull();
    expect(shortName('shop--', 'shop')).toBeNull();
  });
});
