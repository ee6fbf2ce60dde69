// docs/reference.md "Clusters on the command line": login commands as real scripts. Those that ask on a terminal
// are tried in one.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ExecRun, execPluginOf, runExecPlugin } from '../../../src/adapters/kubeconfig/exec_plugin.ts';
import { mappingOf } from '../../../src/adapters/kubeconfig/kubeconfig_files.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { certificate } from '../../kit/certificates.ts';
import { eventually } from '../../kit/eventually.ts';
import { script } from './kubeconfigs.ts';

const GROUP = 'client.authentication.k8s.io';

interface Called {
  exec?: object;
  run?: Partial<ExecRun>;
  folder?: string;
}

/** Runs a plugin with the command `command`. */
function call(command: string, { exec = {}, run = {}, folder = '/' }: Called = {}): Promise<object> {
  const fields = { apiVersion: `${GROUP}/v1`, command, ...exec };
  return runExecPlugin(execPluginOf(fields, { name: 'u', fields: {}, folder }), {
    cluster: { server: 'https://10.0.0.1' },
    isInteractive: false,
    timeoutMs: 60_000,
    onInterrupt: () => () => undefined,
    ...run,
  });
}

/** A script that prints an ExecCredential. */
const printing = (status: object, version = 'v1', more = ''): string =>
  script(`${more}\ncat <<'END'
${JSON.stringify({ apiVersion: `${GROUP}/${version}`, kind: 'ExecCredential', status })}
END`);

it.each(['v1', 'v1beta1', 'v1alpha1'])('a token of %s', async (version) => {
  const later = new Date(Date.now() + 900_000).toISOString();
  const command = printing({ token: 'of-the-plugin', expirationTimestamp: later }, version);
  expect(await call(command, { exec: { apiVersion: `${GROUP}/${version}` } })).toEqual({
    token: 'of-the-plugin',
  });
});

it('a certificate with its key', async () => {
  const { cert, key } = certificate({ commonName: 'me' });
  const answer = await call(printing({ clientCertificateData: cert, clientKeyData: key }));
  const text = (data: unknown): string => Buffer.from(String(data), 'base64').toString();
  expect(Object.values(answer).map(text)).toEqual([cert, key]);
});

it('a plugin gets the same input as from kubectl', async () => {
  const folder = tempDir();
  const said = join(folder, 'said');
  const command = printing(
    { token: 't' },
    'v1',
    `printf '%s\\n' "$KUBERNETES_EXEC_INFO" "$NAME" "$1" > ${said}`,
  );
  const exec = {
    args: ['--flag', 3],
    env: [{ name: 'NAME', value: 'of exec' }, 'x'],
    provideClusterInfo: true,
  };
  await call(command, { exec });
  const [info = '', name, argument] = readFileSync(said, 'utf8').split('\n');
  expect([name, argument]).toEqual(['of exec', '--flag']);
  expect(mappingOf(JSON.parse(info))).toEqual({
    apiVersion: `${GROUP}/v1`,
    kind: 'ExecCredential',
    spec: { interactive: false, cluster: { server: 'https://10.0.0.1' } },
  });
});

it('a path is relative to the kubeconfig, and a name is looked up in PATH', async () => {
  const command = printing({ token: 't' });
  const folder = join(command, '..');
  expect(await call('./login', { folder })).toEqual({ token: 't' });
  await expect(
    call('berth-no-such-login', { exec: { installHint: 'Install it so.' } }),
  ).rejects.toMatchObject({
    name: 'LoginError',
    message: 'the login command berth-no-such-login is not there',
    hint: 'Install it so.',
  });
  await expect(call('/etc/passwd')).rejects.toThrow('cannot be run: ');
});

const WRONG: readonly [what: string, command: () => string, message: string][] = [
  ['fails', () => script('echo "who are you" >&2; exit 3'), 'ended with exit code 3'],
  ['is killed', () => script('kill -9 $$'), 'ended with SIGKILL'],
  ['prints no JSON', () => script('echo please log in'), 'has printed no ExecCredential'],
  ['prints something else', () => script(`echo '{"kind":"Pod"}'`), 'has printed no ExecCredential'],
  ['prints nothing', () => script(''), 'has printed no ExecCredential'],
  ['answers in another version', () => printing({ token: 't' }, 'v1beta1'), 'another apiVersion'],
  ['has no credential', () => printing({}), 'neither a token nor a certificate'],
  ['has half of one', () => printing({ clientCertificateData: 'x' }), 'neither a token nor a certificate'],
  [
    'has one that has ended',
    () => printing({ token: 't', expirationTimestamp: '2020-01-01T00:00:00Z' }),
    'has ended at 2020',
  ],
  ['prints without end', () => script('yes'), 'prints more than'],
];

it.each(WRONG)('a command that %s is refused, without what it printed', async (_, command, message) => {
  await expect(call(command())).rejects.toMatchObject({
    name: 'LoginError',
    message: expect.stringContaining(message),
  });
});

it('a command that needs a terminal is not run without one', async () => {
  const marker = join(tempDir(), 'ran');
  const command = printing({ token: 't' }, 'v1', `touch ${marker}`);
  await expect(call(command, { exec: { interactiveMode: 'Always' } })).rejects.toThrow('asks on a terminal');
  expect(existsSync(marker)).toBe(false);
});

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** A script that hangs with a child, and the pids of both once they run; undefined: not yet. */
function hanging(): { command: string; pids: () => number[] | undefined } {
  const path = join(tempDir(), 'pids');
  const pids = () => {
    const found = existsSync(path) ? readFileSync(path, 'utf8').trim().split(/\s+/).map(Number) : [];
    return found.length === 2 ? found : undefined;
  };
  afterThisTest(async () => {
    for (const pid of pids() ?? []) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return { command: script(`sleep 1000 &\necho $$ $! > ${path}\nwait`), pids };
}

it('a command that hangs is ended with the processes it has started', async () => {
  const { command, pids } = hanging();
  // A busy machine may need longer than that to start it at all.
  for (let timeoutMs = 250; pids() === undefined; timeoutMs *= 2)
    await expect(call(command, { run: { timeoutMs } })).rejects.toMatchObject({
      message: expect.stringContaining(`has not ended after ${timeoutMs / 1_000} s`),
      hint: expect.stringContaining('--login-timeout'),
    });
  await eventually(() => pids()?.every((pid) => !isAlive(pid)) || undefined);
});

it('Ctrl-C ends the command', async () => {
  const { command, pids } = hanging();
  let interrupt = (): void => undefined;
  const onInterrupt: ExecRun['onInterrupt'] = (kill) => {
    interrupt = kill;
    return () => undefined;
  };
  const called = call(command, { run: { onInterrupt } });
  const ended = expect(called).rejects.toThrow('ended with SIGTERM');
  await eventually(pids);
  interrupt();
  await ended;
  await eventually(() => pids()?.every((pid) => !isAlive(pid)) || undefined);
});
