// Finds an agent's conversation among those its program stores, by the rule of its type.
// docs/reference.md "Sessions of agents".
import { homedir } from 'node:os';
import { join } from 'node:path';
import { hasFile } from '../../adapters/has_file.ts';
import { inOpenFile } from '../../adapters/process/open_files.ts';
import type { StoreTable } from '../../adapters/storage/store_tables.ts';
import { isSessionId, type SessionFlags, type StoredSession } from '../../protocol/agent_sessions.ts';
import type { AgentStatus } from '../../protocol/agent_state.ts';
import type { StoredService } from '../../protocol/service.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { SESSION } from '../../settings/agent_limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { LiveRun } from './run.ts';

export interface AgentConversationsOptions {
  name: string;
  effects: ServiceEffects;
  table: StoreTable<StoredSession>;
  /** What the agent is doing. */
  status: () => AgentStatus;
}

export class AgentConversations {
  private readonly options: AgentConversationsOptions;

  constructor(options: AgentConversationsOptions) {
    this.options = options;
  }

  /**
   * The id of the conversation of `run`; null: unknown, or the search has found nothing beyond `known`. Runs
   * a command only if `isThorough` or no id is known.
   */
  async idOf(
    run: LiveRun,
    flags: SessionFlags,
    stored: StoredService,
    { known, isThorough }: { known: string | null; isThorough: boolean },
  ): Promise<string | null> {
    const { find } = flags;
    if (!find) return null;
    if ('keptFile' in find) return known !== null && this.hasFileOf(known, flags, stored) ? known : null;
    if ('openFile' in find) return inOpenFile(run.pid, new RegExp(find.openFile));
    return isThorough || known === null ? this.listed(run, find.command) : null;
  }

  /** Whether the program has a file of the conversation `id`. */
  hasFileOf(id: string, { find }: SessionFlags, stored: StoredService): boolean {
    if (!find || !('keptFile' in find)) return false;
    const { glob, variable, otherwise } = find.keptFile;
    const { effects } = this.options;
    const home = effects.variable(stored, 'HOME') ?? homedir();
    const pattern = glob.replaceAll('$SESSION', id).replaceAll('$BRIEF', id.slice(0, 8));
    return hasFile(effects.variable(stored, variable) ?? join(home, otherwise), pattern);
  }

  /** The conversation of `run` among those listed by `command`; null: none, or ambiguous. */
  private async listed(run: LiveRun, command: string): Promise<string | null> {
    const { effects, name, status, table } = this.options;
    const cmd = command.replaceAll('$SINCE', String(run.startedAt));
    const asked = effects.questions.exec(run.id, cmd, SESSION.searchMs);
    const report = await tolerateFailure(asked, () => null);
    if (report?.exitCode !== 0) return null;
    const others = new Set(table.all().flatMap(([other, row]) => (other === name ? [] : [row.id])));
    const rows = report.output.split('\n').map((line) => line.split('\t'));
    const free = rows.filter(([id = '']) => isSessionId(id) && !others.has(id));
    const { title: shown } = status();
    const isShown = ([, title = '']: string[]): boolean =>
      title !== '' && shown.includes(title.slice(0, SESSION.titleChars));
    const fitting = free.length > 1 ? free.filter(isShown) : free;
    return fitting.length === 1 ? (fitting[0]?.[0] ?? null) : null;
  }
}
