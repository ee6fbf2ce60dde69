// Sends notices to their targets: docs/reference.md "Notices". Dependencies are loaded with the first one.
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { NoticeMessage } from '../protocol/notices.ts';
import type { Clock } from '../runtime/actor.ts';
import { NOTICE } from '../settings/limits.ts';
import type { NoticeTarget } from '../settings/notify.ts';
import { deadlineSignal } from './deadline_signal.ts';

type EnvironmentRows = readonly (readonly [key: string, value: string])[];
type Headers = Readonly<Record<string, string>>;

/** The JSON that a webhook and a command get. */
function noticeJson({ data, at, ...notice }: NoticeMessage): string {
  const isLong = Buffer.byteLength(data) > NOTICE.maxDataBytes;
  const time = new Date(at).toISOString();
  return JSON.stringify({ ...notice, at: time, data: isLong ? null : JSON.parse(data) });
}

/** Sends a body, and rejects unless the answer is 2xx. Redirects are not followed. */
async function post(url: string, headers: Headers, body: string, signal: AbortSignal): Promise<void> {
  const { request } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  await new Promise<void>((resolve, reject) => {
    const length = { 'Content-Length': String(Buffer.byteLength(body)) };
    const sent: ClientRequest = request(url, {
      method: 'POST',
      agent: false,
      signal,
      headers: { ...headers, ...length },
    });
    const take = ({ statusCode = 0 }: IncomingMessage): void => {
      // The body of the answer is not needed.
      sent.destroy();
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(new Error(`it answers ${statusCode}`));
    };
    sent.on('response', take);
    // A 101 that nobody has asked for is no response to node:http.
    sent.on('upgrade', take);
    sent.on('error', reject);
    sent.end(body);
  });
}

async function sendWebhook(
  url: string,
  secret: string,
  notice: NoticeMessage,
  signal: AbortSignal,
): Promise<void> {
  const { createHmac } = await import('node:crypto');
  const body = noticeJson(notice);
  const time = Math.floor(Date.now() / 1000);
  const mac = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
  const headers = {
    'Content-Type': 'application/json',
    'Berth-Notice': notice.id,
    'Berth-Signature': `t=${time},v1=${mac}`,
  };
  await post(url, headers, body, signal);
}

function sendNtfy(url: string, token: string, notice: NoticeMessage, signal: AbortSignal): Promise<void> {
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    // Names have no other characters.
    Title: `${notice.name}: ${notice.type}`,
    ...(token === '' ? {} : { Authorization: `Bearer ${token}` }),
  };
  return post(url, headers, notice.text, signal);
}

/** Runs a program to its end, in a process group that is killed when `signal` aborts. */
async function run(
  [program, ...args]: readonly [string, ...string[]],
  env: EnvironmentRows,
  input: string,
  signal: AbortSignal,
): Promise<void> {
  const { spawn } = await import('node:child_process');
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const child = spawn(program, args, {
      env: Object.fromEntries(env),
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    const kill = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
      reject(signal.reason);
    };
    signal.addEventListener('abort', kill);
    child.on('error', reject);
    child.on('exit', (code, killed) => {
      signal.removeEventListener('abort', kill);
      if (code === 0) resolve();
      else reject(new Error(`it ended with ${code === null ? killed : `exit code ${code}`}`));
    });
    // A program that does not read its input is no error of ours.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** Escapes text for desktop notifications, most of which interpret markup. */
const plainMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function send(
  target: NoticeTarget,
  notice: NoticeMessage,
  env: EnvironmentRows,
  signal: AbortSignal,
): Promise<void> {
  switch (target.kind) {
    case 'webhook':
      return sendWebhook(target.url, target.secret, notice, signal);
    case 'ntfy':
      return sendNtfy(target.url, target.token, notice, signal);
    case 'exec':
      return run(['/bin/sh', '-c', target.command], env, noticeJson(notice), signal);
    case 'desktop': {
      const title = `${notice.name}: ${notice.type}`;
      const words = ['--app-name=Berth', '--', title, plainMarkup(notice.text)] as const;
      return run(['notify-send', ...words], env, '', signal);
    }
    default:
      return target satisfies never;
  }
}

const LATE = `no answer within ${NOTICE.timeoutMs / 1000} s`;

const CODE_TEXTS: readonly (readonly [code: RegExp, text: string])[] = [
  [/^HPE_HEADER_OVERFLOW$/, 'the head of its answer is too large'],
  [/^HPE_/, 'its answer is no HTTP'],
  [/^ECONNREFUSED$/, 'nothing listens there (ECONNREFUSED)'],
  [/^(?:ECONNRESET|EPIPE)$/, 'it closed the connection without an answer'],
  [/^ENOTFOUND$/, 'its host name has no address (ENOTFOUND)'],
  [/^EAI_AGAIN$/, 'its host name cannot be looked up now (EAI_AGAIN)'],
  [/^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/, 'its host cannot be reached'],
  [/^ENOENT$/, 'the program is not installed (ENOENT)'],
];

/** Describes an error without revealing anything about the target. */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  if (error.name === 'TimeoutError') return LATE;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  // The abort of the time limit, as node:http reports it.
  if (code === 'ABORT_ERR') return LATE;
  if (code === '') return error.message;
  return CODE_TEXTS.find(([known]) => known.test(code))?.[1] ?? code;
}

/**
 * Sends a notice, once. Resolves with why it failed; null: it was delivered. `env`: for programs. `ended`
 * aborts it and kills its program, because no one would watch that afterwards.
 */
export async function sendNotice(
  target: NoticeTarget,
  notice: NoticeMessage,
  env: EnvironmentRows,
  ended: AbortSignal,
  clock: Clock,
): Promise<string | null> {
  const deadline = deadlineSignal(clock, NOTICE.timeoutMs, ended);
  try {
    await send(target, notice, env, deadline.signal);
    return null;
  } catch (error) {
    return errorText(error);
  } finally {
    deadline.clear();
  }
}
