// berth mcp
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { BerthError } from '../../client/errors.ts';
import type { BroughtUp, Workplace } from '../../mcp/tool.ts';
import { shellEnvironment } from '../../protocol/base_environment.ts';
import { berthScript, ensureDaemon } from '../kit/background_daemon.ts';
import { defineCommand } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { sanitize } from '../kit/sanitize.ts';
import { stderr } from '../kit/standard_streams.ts';

/** What a command with --json says on stderr. */
interface Message {
  name?: unknown;
  message?: unknown;
  hint?: unknown;
}

/** The messages of a command that are JSON, each on a line of its own. */
function messagesIn(output: string): Message[] {
  return output.split('\n').flatMap((line): Message[] => {
    try {
      return [Object(JSON.parse(line))];
    } catch {
      return [];
    }
  });
}

/** The last lines that a failed command printed on stderr, for people. */
function lastLines(output: string): string {
  const texts = messagesIn(output).map(({ name, message, hint }) =>
    [[name, message].filter(Boolean).join(': '), hint].filter(Boolean).join('\n'),
  );
  const text = texts.length > 0 ? texts.join('\n') : output.trim();
  return text.split('\n').slice(-8).join('\n');
}

/** Runs `berth up` in `folder`. Fails invalid_spec without that folder, start_failed if nothing comes up. */
async function bringUp(
  { globalOptions: { url, stateDir, config } }: CommandContext,
  folder: string,
  signal: AbortSignal,
): Promise<BroughtUp> {
  if (!existsSync(folder)) throw new BerthError('invalid_spec', `there is no folder ${folder}`);
  const flags = { '--url': url, '--state-dir': stateDir, '--config': config };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  const child = spawn(process.execPath, [berthScript(), 'up', '--json', ...given], {
    cwd: folder,
    signal,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve());
  });
  const [rows, messages] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const names = namesIn(rows);
  if (names.length > 0) return { names, errors: errorsIn(messages) };
  throw new BerthError('start_failed', `berth up in ${folder}: ${lastLines(messages)}`, {
    hint: 'Fix what the message names, then call it again.',
  });
}

/** The names printed by `berth up --json`, which prints nothing if it rejects the project. */
function namesIn(rows: string): string[] {
  try {
    const found: { name?: unknown }[] = JSON.parse(rows);
    return found.flatMap(({ name }) => (typeof name === 'string' ? [name] : []));
  } catch {
    return [];
  }
}

/** The failures printed by `berth up --json`, by service. */
const errorsIn = (output: string): Map<string, string> =>
  new Map(
    messagesIn(output).flatMap(({ name, message }) =>
      typeof name === 'string' && typeof message === 'string' ? [[name, message] as const] : [],
    ),
  );

export const mcpCommand = defineCommand({
  about:
    'Speaks the Model Context Protocol on stdin and stdout: the tools with which an agent works with ' +
    'services, logs, agents and workloads. Agents start it themselves; `berth agent init` tells them to. ' +
    'Starts a daemon in the background if none runs.',
  examples: [['claude mcp add berth -- berth mcp', 'for a program that is not set up by `berth agent init`']],
  run: async (context) => {
    const { serveOnStdio } = await import('../../mcp/stdio.ts');
    await ensureDaemon(context);
    const workplace: Workplace = {
      client: await context.client(),
      folder: process.cwd(),
      baseEnv: shellEnvironment(process.env),
      bringUp: (folder, signal) => bringUp(context, folder, signal),
    };
    const isComplete = await serveOnStdio(workplace, (error) => {
      stderr().write(`berth mcp: ${sanitize(error instanceof Error ? error.message : String(error))}\n`);
    });
    return isComplete ? undefined : 1;
  },
});
