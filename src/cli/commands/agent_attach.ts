// berth agent attach

import type { TerminalEnd } from '../../client/attach_terminal.ts';
import { type AgentViewing, attachAgent, describeTerminalEnd } from '../kit/attach_agent.ts';
import { defineCommand, flagOption, type Option } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { DEFAULT_DETACH_KEYS, parseDetachKeys } from '../kit/detach_keys.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';
import { stdout } from '../kit/standard_streams.ts';

const TAKING_OVER = { mode: 'write', takeover: true } as const;

const DETACH_KEYS_OPTION: Option<AgentViewing['detachKeys']> = {
  flags: '--detach-keys <keys>',
  about: 'what leaves, instead of Ctrl-]: a key such as ctrl-q, or several such as ctrl-p,ctrl-q',
  defaultValue: undefined,
  parse: parseDetachKeys,
};

/** Reports how a session with `name` ended; returns the exit code. */
function reportEnd({ out }: CommandContext, name: string, end: TerminalEnd): number {
  const { text, isSmooth } = describeTerminalEnd(name, end);
  if (isSmooth) out.note(text);
  else out.warn(text);
  if (end.exit) return end.exit.exitCode ?? 1;
  return isSmooth ? 0 : 1;
}

export const agentAttachCommand = defineCommand({
  about:
    'Connects your keyboard and screen to the terminal of the agent until you leave with Ctrl-] or the ' +
    'agent ends. The agent keeps running when you leave. Several people may be attached and type.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    observe: flagOption('--observe', 'watch only: what you type goes nowhere, but for the detach keys'),
    takeover: flagOption('--takeover', 'be its only writer; the writer that there is has to leave'),
    detachKeys: DETACH_KEYS_OPTION,
    ...SCOPE_OPTIONS,
  },
  run: async (context, [name = ''], { observe, takeover, detachKeys = DEFAULT_DETACH_KEYS, ...choice }) => {
    if (observe && takeover) throw new UsageError('--observe and --takeover exclude each other');
    if (!process.stdin.isTTY || !stdout().isTTY) {
      throw new UsageError(
        'attach needs a terminal',
        `\`berth agent logs ${name} -f\` follows its output without one.`,
      );
    }
    const client = await context.client();
    const viewing = observe ? ({ mode: 'observe' } as const) : takeover ? TAKING_OVER : {};
    const called = (await stackScope(client, choice)).full(name);
    const onOpen = (): void =>
      context.out.note(`${observe ? 'Watching' : 'Attached to'} ${name}; ${detachKeys.text} leaves.`);
    const end = await attachAgent(context, client, called, { ...viewing, onOpen, detachKeys });
    return reportEnd(context, name, end);
  },
});
