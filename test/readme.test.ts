// The README is true: its tables of paths, errors and settings are compared with the program's, in both
// directions.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'smol-toml';
import { expect, it } from 'vitest';
import { ROUTES } from '../src/front/api/routes.ts';
import { AGENT_TYPES } from '../src/protocol/agent_types.ts';
import { ERRORS } from '../src/protocol/errors.ts';
import { loadSettings } from '../src/settings/config.ts';
import { INVARIANTS } from '../src/settings/limit_invariants.ts';

const readme = readFileSync(
  join(resolve(dirname(fileURLToPath(import.meta.url)), '..'), 'README.md'),
  'utf8',
);

it('the README names every error with its status, and no other', () => {
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

it('the README names every agent type, in order', () => {
  const names = /`agent_type` \(([^)]*)\)/.exec(readme)?.[1];
  expect(names?.split(', ')).toEqual(AGENT_TYPES);
});

it('the README shows every setting with its default', async () => {
  const toml = /```toml\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  expect(parse(toml)).toEqual(await loadSettings(undefined, { XDG_CONFIG_HOME: '/nonexistent' }));
});

/**
 * The rows of the table of the API, as `GET /path`. A path after a full one stands for its sibling, and
 * methods in a row of their own, as in `GET`, `DELETE /path`, belong to the path after them.
 */
function tabled(table: string): string[] {
  return [...table.matchAll(/^\| ([A-Z, ]+?)(?: \(\+\))? \| (.*) \|$/gm)].flatMap(
    ([, heads = '', rest = '']) => {
      const rows: string[] = [];
      let last = '';
      let own: string[] = [];
      for (const code of rest.split('`').filter((_, index) => index % 2 === 1)) {
        const [, method, path] = /^(?:([A-Z]+)(?: |$))?(\/[^?]*)?/.exec(code) ?? [];
        if (method) own.push(method);
        if (!path) continue;
        const isWhole = /^\/(v1|k8s)\//.test(path) || !last.includes('{');
        last = isWhole ? path : last.slice(0, last.lastIndexOf('/')) + path;
        rows.push(...(own.length > 0 ? own : heads.split(', ')).map((name) => `${name} ${last}`));
        own = [];
      }
      return rows;
    },
  );
}

it('the README names every method and path of the API, and no other', () => {
  const routes = ROUTES.map(({ method, path }) => `${method} ${path}`);
  // A file without a row: its response is not JSON of the API.
  const all = [...routes, 'GET /schema/berth.json'];
  const api = readme.slice(readme.indexOf('## The API'), readme.indexOf('### Errors'));
  expect(tabled(api).sort()).toEqual(all.sort());
});

it.each(INVARIANTS)('the limits are consistent: %s', (_why, holds) => {
  expect(holds).toBe(true);
});
