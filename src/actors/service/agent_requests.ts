// Requests for an agent's terminal from clients that are not attached to it: its screen, keys, prompts.
import { agentKind } from '../../protocol/agent_types.ts';
import type { PromptTyping } from '../../protocol/coding_agents.ts';
import { fail } from '../../protocol/errors.ts';
import type { ScreenReading, TerminalProtocol } from '../../protocol/terminal.ts';
import type { Context, MessageOf, ReplyOf } from '../../runtime/actor.ts';
import { AgentPrompts } from './agent_prompts.ts';
import type { AgentSession } from './agent_session.ts';
import type { AgentState } from './agent_state.ts';
import { type AgentTerminal, DEFAULT_TERMINAL_SIZE } from './agent_terminal.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { LiveRun } from './run.ts';
import type { ServiceLog } from './service_log.ts';
import { liveRun } from './state.ts';
import type { TerminalSize } from './terminal_sizes.ts';

export interface AgentRequestsOptions {
  context: Context;
  name: string;
  life: ServiceLifecycle;
  log: ServiceLog;
  terminal: AgentTerminal;
  agent: AgentState;
  session: AgentSession;
}

type LiveTerminal = [run: LiveRun, size: TerminalSize];

/** For a program without a row in the table: a newline is typed as Enter, as in a shell. */
const PLAIN_TYPING: PromptTyping = { bracketedPaste: true, pauseMs: 100, submit: 'Enter', newline: 'Enter' };

export class AgentRequests {
  readonly prompts: AgentPrompts;
  private readonly options: AgentRequestsOptions;

  constructor(options: AgentRequestsOptions) {
    const { agent, context, log, name } = options;
    this.options = options;
    this.prompts = new AgentPrompts({
      name,
      clock: context.clock,
      log,
      status: () => agent.status(),
      actedAt: () => agent.actedAt,
      watchState: (onChange) => agent.watchStatus(onChange),
      terminal: () => {
        const [{ id, logFrom, pid, startedAt }] = this.live();
        return { run: id, pid, startedAt, logFrom, typing: this.typing() };
      },
      type: (data) => this.ofTerminal((terminal, ...live) => terminal.typeBytes(...live, data)),
      readLines: async () => {
        const read = this.ofTerminal((terminal, ...live) => terminal.screen(...live, false, true));
        return (await read).lines;
      },
      readLinesOf: async (run) => (await this.options.terminal.latestScreen(run)).lines,
    });
  }

  async screen({ ansi }: MessageOf<TerminalProtocol, 'screen'>): Promise<ScreenReading> {
    const { session, terminal } = this.options;
    const { kept } = session;
    if (kept) return terminal.screenThen(kept.run, kept.screen, ansi);
    return this.ofTerminal((live, ...of) => live.screen(...of, ansi));
  }

  async type(message: MessageOf<TerminalProtocol, 'type'>): Promise<ReplyOf<TerminalProtocol, 'type'>> {
    return this.ofTerminal((terminal, ...live) => terminal.type(...live, message));
  }

  /** The run that has a terminal, and the size it was made with. Fails not_running. */
  live(): LiveTerminal {
    const { life, name } = this.options;
    const { state, stored } = life.snapshot();
    const run = liveRun(state);
    if (!run?.pty) throw fail('not_running', `${name} has no terminal: it does not run`);
    return [run, { ...(stored?.spec.agent ?? DEFAULT_TERMINAL_SIZE), marks: run.metadata.sizes }];
  }

  private ofTerminal<T>(work: (terminal: AgentTerminal, run: string, size: LiveTerminal[1]) => T): T {
    const [run, size] = this.live();
    return work(this.options.terminal, run.id, size);
  }

  /** How a prompt is typed. Fails no_prompt. */
  private typing(): PromptTyping {
    const { life, name } = this.options;
    const type = life.snapshot().stored?.spec.agent?.agentType ?? null;
    if (type === null) return PLAIN_TYPING;
    const { coding } = agentKind(type);
    if (!coding) throw fail('no_prompt', `${name} is a server (${type}), and takes no prompt`);
    return coding.prompt;
  }
}
