// The README says what is: its tables of errors and settings are compared with the program's, in both directions.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'smol-toml';
import { expect, it } from 'vitest';
import { loadSettings } from '../src/config.ts';
import { ROUTES } from '../src/front/routes.ts';
import { cloudRoutes } from '../src/front/routes_cloud.ts';
import { CloudViews } from '../src/front/views_cloud.ts';
import { RELATIONS } from '../src/limits.ts';
import { ERRORS } from '../src/protocol/errors.ts';

const readme = readFileSync(
  join(resolve(dirname(fileURLToPath(import.meta.url)), '..'), 'README.md'),
  'utf8',
);

it('names every error with its status, and none that does not exist', () => {
  const section = readme.slice(readme.indexOf('### Errors'), readme.indexOf('## Configuration'));
  const rows = [...section.matchAll(/^\| (\d{3}) \| (.*) \|$/gm)].flatMap(([, status, codes = '']) =>
    [...codes.matchAll(/`([a-z_]+)`/g)]
      .map(([, code]) => `${code} ${status}`)
      .filter((row) => !row.startsWith('details')),
  );
  expect(rows.sort()).toEqual(
    Object.entries(ERRORS)
      .map(([code, { status }]) => `${code} ${status}`)
      .sort(),
  );
});

it('shows every setting with its default', async () => {
  const toml = /```toml\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  expect(parse(toml)).toEqual(await loadSettings(undefined, { XDG_CONFIG_HOME: '/nonexistent' }));
});

it('names every path of the API', () => {
  const cloud = cloudRoutes({ views: new CloudViews(), ensure: async () => undefined });
  const api = readme.slice(readme.indexOf('## The API'), readme.indexOf('### Errors'));
  const missing = [...ROUTES, ...cloud]
    .map(({ path }) => path)
    .filter((path) => !api.includes(path) && !api.includes(`/${path.split('/').at(-1)}\``));
  expect(missing).toEqual([]);
});

it.each(RELATIONS)('the limits hold: %s', (_why, holds) => {
  expect(holds).toBe(true);
});
