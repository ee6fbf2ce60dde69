// One command that a person runs in the environment of a service: docs/reference.md "Commands". It is not a
// service: nothing about it is stored, listed or journaled, and it ends with its terminal. A run that a
// killed daemon leaves behind belongs to no service, so the next daemon stops it.
import { homedir } from 'node:os';
import type { CommandInput } from '../../protocol/commands.ts';
import { fail } from '../../protocol/errors.ts';
import { newRunId } from '../../protocol/names.ts';
import type { RunEnd, StoredService } from '../../protocol/service.ts';
import { type Context, Failure, isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { COMMAND } from '../../settings/limits.ts';
import type { AgentTerminal } from './agent_terminal.ts';
import type { ServiceEffects } from './effects.ts';

export interface CommandSessionOptions {
  context: Context;
  /** Its id, which is the name of its actor. */
  name: string;
  effects: ServiceEffects;
  terminal: AgentTerminal;
  /** The service it runs beside; null: none. */
  stored: StoredService | null;
  input: CommandInput;
  /** Called when nothing is left of it. */
  onOver: () => void;
}

type CommandState = { is: 'prepared' } | { is: 'begun'; run: string } | { is: 'ended' };

export class CommandSession {
  private readonly options: CommandSessionOptions;
  private state: CommandState = { is: 'prepared' };
  private readonly stopWaiting: () => void;

  /** Fails daemon_busy when too many commands wait for their terminals. */
  constructor(options: CommandSessionOptions) {
    const { context, effects } = options;
    const { commandsWaiting } = effects;
    if (commandsWaiting.count >= COMMAND.maxWaiting)
      throw fail('daemon_busy', `${commandsWaiting.count} commands wait for their terminals`);
    this.options = options;
    commandsWaiting.count += 1;
    const cancel = context.clock.after(COMMAND.attachTimeoutMs, () => this.finish());
    let isWaiting = true;
    this.stopWaiting = () => {
      if (isWaiting) commandsWaiting.count -= 1;
      isWaiting = false;
      cancel();
    };
    context.scope.defer(this.stopWaiting);
  }

  /** Starts the command for its only viewer. Fails not_running for another one, and as a spawn does. */
  async attach(viewer: string): Promise<null> {
    const { context, effects, input, stored, terminal } = this.options;
    if (this.state.is !== 'prepared') throw fail('not_running', 'the command has its terminal already');
    this.stopWaiting();
    const run = newRunId(context.clock.now());
    this.state = { is: 'begun', run };
    const { baseEnv, cols, rows, cmd, env } = input;
    const cwd = input.cwd ?? stored?.spec.cwd ?? homedir();
    terminal.attachAll(viewer, run, { cols, rows });
    try {
      await effects.spawnCommand(run, { cmd, cwd, baseEnv, env, stored, cols, rows });
    } catch (error) {
      this.finish();
      if (!isFailure(error)) throw error;
      throw new Failure(error.code, error.message.replace(this.options.name, 'the command'), error.detail);
    }
    return null;
  }

  /** The terminal is gone, so the command ends too. */
  detach(): void {
    const { state } = this;
    if (state.is !== 'begun') return;
    const stopped = this.options.effects.stopRun(state.run, 0, COMMAND.stop);
    // If the host does not answer, it stops the run for the next daemon that asks for its runs.
    this.inBackground(tolerateFailure(stopped, () => null).then(() => this.finish()));
  }

  /** The viewer gets the remaining output, then the exit. */
  exited({ run, exitCode, signal }: RunEnd): void {
    const { effects, terminal } = this.options;
    if (this.state.is === 'begun' && this.state.run === run) {
      this.state = { is: 'ended' };
      terminal.onRunEnded(run, { exitCode, signal }, () => this.finish());
    }
    effects.acknowledge(run);
  }

  private finish(): void {
    this.state = { is: 'ended' };
    this.stopWaiting();
    const { effects, onOver } = this.options;
    this.inBackground(tolerateFailure(effects.forget(), () => null).then(onOver));
  }

  private inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.options.context.crash(error));
  }
}
