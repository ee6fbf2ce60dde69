// No token is left behind: not in the files of the state directory, the command lines of processes, the
// environment of services, logs, messages or the output of commands. docs/reference.md "Tokens".
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { eventually } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { exchangeKey, pageServer } from '../kit/page_session.ts';

const TOKEN = 'a-token-that-may-be-nowhere-else';
const NEXT_TOKEN = 'the-token-that-comes-after-it';
const CLOUD_TOKEN = 'a-cloud-token-that-may-be-nowhere-else';

/** The forms of every token in which it could be left somewhere. */
const FORMS = [TOKEN, NEXT_TOKEN, CLOUD_TOKEN].flatMap((token) =>
  [
    token,
    ...(['base64', 'base64url', 'hex', 'utf16le'] as const).map((form) => Buffer.from(token).toString(form)),
  ].map((text) => Buffer.from(text)),
);
const holdsToken = (bytes: Buffer): boolean => FORMS.some((form) => bytes.includes(form));

/** The files below `path` that hold a token; null: one went while they were read. */
function filesWithToken(path: string): string[] | null {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name));
  try {
    return names.filter((name) => statSync(name).isFile() && holdsToken(readFileSync(name)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

const procFile = (pid: string, name: string): Buffer => {
  try {
    return readFileSync(`/proc/${pid}/${name}`);
  } catch {
    // Of another user, or ended meanwhile.
    return Buffer.alloc(0);
  }
};

it('no token is left in files, logs or processes', async () => {
  // The tokens come by the environment, which services must not inherit.
  const daemon = await daemonOf({ env: { BERTH_AUTH_TOKEN: TOKEN, BERTH_CLOUD_TOKEN: CLOUD_TOKEN } });
  const env = cleanEnv(folder(), {
    BERTH_STATE_DIR: daemon.stateDir,
    BERTH_CONFIG: daemon.configFile,
    BERTH_AUTH_TOKEN: TOKEN,
    BERTH_CLOUD_TOKEN: CLOUD_TOKEN,
    BROWSER: 'true',
  });
  const said: string[] = [];
  const run = async (line: string | string[], more: Record<string, string> = {}): Promise<string> => {
    const args = typeof line === 'string' ? line.split(' ') : line;
    const { stdout, stderr } = await berth(args, { env: { ...env, ...more } });
    said.push(stdout, stderr);
    return stdout;
  };
  await run(['add', 'web', '-p', String(freePort()), 'env; exec sleep 600']);
  await run('start web');
  await run(['agent', 'spinup', 'bot', 'env; exec sleep 600']);
  const environment = () => daemon.request('GET', '/v1/services/web/logs?lines=1000', undefined, headers);
  const headers = { authorization: `Bearer ${TOKEN}` };
  await eventually(async () => (await environment()).text.includes('PORT='));
  said.push((await environment()).text);
  for (const line of [
    'ps --json',
    'status web --json',
    'k8s clusters --json',
    'doctor --json',
    'version --json',
  ])
    await run(line);
  await run('ps', { BERTH_AUTH_TOKEN: 'wrong' });
  await run('ps', { BERTH_AUTH_TOKEN: `${TOKEN} with a blank` });
  await run('daemon status --json');
  const opened: { url: string } = JSON.parse(await run('open --json'));
  const used = await exchangeKey(pageServer(daemon), opened.url.split('#code=')[1] ?? '');
  expect(used.status).toBe(201);
  await daemon.request('GET', `/v1/services/${TOKEN}`, undefined, { authorization: 'Bearer wrong' });
  writeFileSync(
    daemon.configFile,
    `${readFileSync(daemon.configFile, 'utf8')}\n[auth]\ntoken = "${NEXT_TOKEN} x"\n`,
  );
  daemon.signal('SIGHUP');
  await eventually(() => daemon.stderr().includes('nothing was changed'));

  const pidsWithToken = (file: string): string[] =>
    readdirSync('/proc').filter((name) => /^\d+$/.test(name) && holdsToken(procFile(name, file)));
  expect(pidsWithToken('cmdline')).toEqual([]);
  // A process that is being made has the environment of its parent until it becomes another program.
  const heirs = (): string => pidsWithToken('environ').join();
  await eventually(() => heirs() === String(daemon.pid), heirs);
  expect(await eventually(() => filesWithToken(daemon.stateDir))).toEqual([]);
  expect(holdsToken(Buffer.from(daemon.stdout() + daemon.stderr()))).toBe(false);
  expect(said.filter((text) => holdsToken(Buffer.from(text)))).toEqual([]);
});
