// The requests of a service to the process host about its run.
import type { ExecReport, HostProtocol, LedgerRun, Notice } from '../../protocol/host.ts';
import { type Ref, type ReplyOf, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { LiveRun } from './run.ts';

const NO_DROPPED_ROWS: ReplyOf<HostProtocol, 'dropped'> = { rows: [] };

export class HostQuestions {
  private readonly host: Ref<HostProtocol>;
  private readonly name: string;

  constructor(host: Ref<HostProtocol>, name: string) {
    this.host = host;
    this.name = name;
  }

  /** Runs a command in the context of a run: see `HostProtocol.exec`. */
  exec(run: string, cmd: string, timeoutMs: number): Promise<ExecReport> {
    const deadlineMs = timeoutMs + SERVICE.hostAskTimeoutMs;
    return this.host.ask('exec', { service: this.name, run, cmd, timeoutMs }, { deadlineMs });
  }

  /** What a run has reported through its socket: see `HostProtocol.notified`. */
  notified(run: string, what: Notice, timeoutMs: number): Promise<ReplyOf<HostProtocol, 'notified'>> {
    const deadlineMs = timeoutMs + SERVICE.hostAskTimeoutMs;
    return this.host.ask('notified', { run, what, timeoutMs }, { deadlineMs });
  }

  /** Like `ServiceEffects.note`. Resolves when the host has it, whatever happens to this daemon. */
  async note({ id, metadata }: LiveRun): Promise<void> {
    const deadlineMs = SERVICE.hostAskTimeoutMs;
    await this.host.ask('note', { service: this.name, run: id, memo: metadata }, { deadlineMs });
  }

  /** Sends a signal to the process group of a run. */
  async signal(run: string, signal: string): Promise<number> {
    const { processes } = await this.host.ask(
      'signal',
      { service: this.name, run, signal },
      { deadlineMs: SERVICE.hostAskTimeoutMs },
    );
    return processes;
  }

  /** Bytes of output lost to a full disk; 0 when the host does not answer at once. */
  async droppedBytes(): Promise<number> {
    const dropped = this.host.ask('dropped', {}, { deadlineMs: SERVICE.hostRetryMs });
    const { rows } = await tolerateFailure(dropped, () => NO_DROPPED_ROWS);
    return rows.find(({ service }) => service === this.name)?.bytes ?? 0;
  }

  /** The run of the service in the host's ledger. */
  async runOf(): Promise<LedgerRun | null> {
    const { run } = await this.host.ask(
      'runOf',
      { service: this.name },
      { deadlineMs: SERVICE.hostAskTimeoutMs },
    );
    return run;
  }
}
