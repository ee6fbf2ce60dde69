// What `berth init` does to a configuration that exists.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadSettings } from '../../../src/settings/config.ts';
import { berth, cleanEnv, folder } from '../berth_process.ts';

async function init(config: string): Promise<{ code: number | null; stdout: string; path: string }> {
  const home = folder();
  const path = join(home, 'config.toml');
  writeFileSync(path, config);
  return { ...(await berth(['init'], { env: cleanEnv(home, { BERTH_CONFIG: path }), cwd: home })), path };
}

it.each([
  '[auth]\n',
  "  [ auth ]\n  token = ''\n",
  '["auth"]\n"token" = ""\n',
  'auth.token = ""\n[gateway]\nport = 0\n',
  '"auth" = { token = "" }\n',
])('a configuration that has an empty token stays as it is: %j', async (config) => {
  const { code, stdout, path } = await init(config);
  expect(readFileSync(path, 'utf8')).toBe(config);
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${path} has an [auth] without a token: write token = "..." there`),
  });
});

it.each([
  'port = 0',
  'port = 0\r\n[gateway]\r\nport = 0\r\n',
  '[[notify]]\nwhen = { types = ["*"] }\nto = { exec = """mail \\\n[auth]""" }\n',
])('a configuration without a token gets one: %j', async (config) => {
  const { stdout, path } = await init(config);
  expect(stdout).toContain(`${path} has a token now`);
  expect(readFileSync(path, 'utf8').startsWith(config)).toBe(true);
  expect((await loadSettings(path, {})).auth.token).toHaveLength(32);
});
