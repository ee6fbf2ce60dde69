// The user's login program (`exec` in a kubeconfig). It is the user's own, and the command line runs it as
// kubectl does: it may ask on the terminal and open a browser. The daemon never runs it.
import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { type Fields, type KubeconfigEntry, KubeconfigError, mappingOf } from './kubeconfig_files.ts';

export interface ExecPlugin {
  /** A name for $PATH, or an absolute path. */
  command: string;
  args: string[];
  env: Record<string, string>;
  apiVersion: string;
  /** Whether it must, may or must not ask on the terminal. */
  interactiveMode: 'Always' | 'IfAvailable' | 'Never';
  wantsCluster: boolean;
  installHint: string;
}

/** Why the user cannot be logged in to a cluster, and what to do about it. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
  readonly hint: string;
  constructor(message: string, hint = '') {
    super(message);
    this.hint = hint;
  }
}

export interface ExecRun {
  /** What it is told about the cluster, if it wants to know. */
  cluster: Fields;
  /** Whether the user can be asked. */
  isInteractive: boolean;
  timeoutMs: number;
  /** Registers `kill`, called when the command is interrupted. Returns a function that unregisters it. */
  onInterrupt(kill: () => void): () => void;
}

const API_GROUP = 'client.authentication.k8s.io';
const API_VERSIONS = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `${API_GROUP}/${version}`);
const MODES = ['Always', 'IfAvailable', 'Never'] as const;
/** Tokens and certificate chains are far smaller. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];

const envOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    (Array.isArray(value) ? value : []).flatMap((row) => {
      const { name, value: text } = mappingOf(row) ?? {};
      return typeof name === 'string' && typeof text === 'string' ? [[name, text]] : [];
    }),
  );

/** The plugin of a user. Throws a KubeconfigError in cases where kubectl would not run it either. */
export function execPluginOf(exec: Fields, user: KubeconfigEntry): ExecPlugin {
  const { command, apiVersion = '', interactiveMode = 'IfAvailable', installHint } = exec;
  if (typeof command !== 'string' || command === '')
    throw new KubeconfigError(`exec of the user ${user.name} has no command`);
  if (typeof apiVersion !== 'string' || !API_VERSIONS.includes(apiVersion))
    throw new KubeconfigError(
      `exec of the user ${user.name} has an apiVersion that is not known: ${JSON.stringify(apiVersion)}`,
      `Known: ${API_VERSIONS.join(', ')}.`,
    );
  const mode = MODES.find((one) => one === interactiveMode);
  if (!mode)
    throw new KubeconfigError(`interactiveMode of the user ${user.name} is none of ${MODES.join(', ')}`);
  return {
    // As in kubectl: a path is relative to the kubeconfig, and a bare name is looked up in PATH.
    command: command.includes('/') ? resolve(user.folder, command) : command,
    args: textsOf(exec['args']),
    env: envOf(exec['env']),
    apiVersion,
    interactiveMode: mode,
    wantsCluster: exec['provideClusterInfo'] === true,
    installHint: typeof installHint === 'string' ? installHint : '',
  };
}

function start(plugin: ExecPlugin, { cluster, isInteractive }: ExecRun): ChildProcess {
  const mayAsk = isInteractive && plugin.interactiveMode !== 'Never';
  const spec = { interactive: mayAsk, ...(plugin.wantsCluster ? { cluster } : {}) };
  const info = { apiVersion: plugin.apiVersion, kind: 'ExecCredential', spec };
  return spawn(plugin.command, plugin.args, {
    env: { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    // What it says on stderr, such as a code to type into a browser, must reach the user at once.
    stdio: [mayAsk ? 'inherit' : 'ignore', 'pipe', 'inherit'],
    // In a group of its own it could not read the terminal.
    detached: !mayAsk,
  });
}

/** Ends the program, and everything it has started if it has a process group of its own. */
function killTree(child: ChildProcess, isGroup: boolean, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(isGroup ? -child.pid : child.pid, signal);
  } catch {
    // It has ended already.
  }
}

/** The output of the program. Throws a LoginError when it fails, prints too much or takes too long. */
function outputOf(plugin: ExecPlugin, run: ExecRun): Promise<string> {
  const name = plugin.command;
  const isGroup = !(run.isInteractive && plugin.interactiveMode !== 'Never');
  return new Promise((settle, reject) => {
    const child = start(plugin, run);
    const chunks: Buffer[] = [];
    let size = 0;
    const takeBack = run.onInterrupt(() => killTree(child, isGroup, 'SIGTERM'));
    const finish = (error: LoginError | null): void => {
      clearTimeout(timer);
      takeBack();
      if (error) reject(error);
      else settle(Buffer.concat(chunks).toString());
    };
    const giveUp = (reason: string, hint = ''): void => {
      child.stdout?.destroy();
      // The command ends with this error, and cannot wait for the program to end.
      killTree(child, isGroup, 'SIGKILL');
      finish(new LoginError(`the login command ${name} ${reason}`, hint));
    };
    const timer = setTimeout(
      () => giveUp(`has not ended after ${run.timeoutMs / 1_000} s`, '--login-timeout gives it more time.'),
      run.timeoutMs,
    );
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > MAX_OUTPUT_BYTES) giveUp(`prints more than ${MAX_OUTPUT_BYTES} bytes`);
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT';
      const reason = isMissing ? 'is not there' : `cannot be run: ${error.message}`;
      finish(new LoginError(`the login command ${name} ${reason}`, isMissing ? plugin.installHint : ''));
    });
    child.on('close', (code, signal) => {
      const end = signal === null ? `exit code ${code}` : signal;
      const isFine = code === 0;
      finish(isFine ? null : new LoginError(`the login command ${name} ended with ${end}`, AS_IT_SAYS));
    });
  });
}

const AS_IT_SAYS = 'What it has printed is above; kubectl would fail with it, too.';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/**
 * Runs the program, and returns the user that it logs in. Throws a LoginError, which never contains its
 * stdout.
 */
export async function runExecPlugin(plugin: ExecPlugin, run: ExecRun): Promise<Record<string, string>> {
  const what = `the login command ${plugin.command}`;
  if (plugin.interactiveMode === 'Always' && !run.isInteractive)
    throw new LoginError(`${what} asks on a terminal, and there is none`, 'Repeat it in a terminal.');
  const text = await outputOf(plugin, run);
  let answer: Fields | undefined;
  try {
    answer = mappingOf(JSON.parse(text));
  } catch {
    answer = undefined;
  }
  if (answer?.['kind'] !== 'ExecCredential') throw new LoginError(`${what} has printed no ExecCredential`);
  if (answer['apiVersion'] !== plugin.apiVersion)
    throw new LoginError(`${what} has printed another apiVersion than ${plugin.apiVersion}`);
  const status = mappingOf(answer['status']) ?? {};
  const end = Date.parse(String(status['expirationTimestamp']));
  if (end < Date.now())
    throw new LoginError(`${what} gives a login that has ended at ${new Date(end).toISOString()}`);
  const { token, clientCertificateData: certificate, clientKeyData: key } = status;
  if (typeof certificate === 'string' && typeof key === 'string' && certificate !== '')
    return { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
  if (typeof token === 'string' && token !== '') return { token };
  throw new LoginError(`${what} gives neither a token nor a certificate with its key`);
}
