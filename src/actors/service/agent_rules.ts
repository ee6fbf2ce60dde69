// The screen rules, shared by the agents of a thread. They are read again when an agent starts, so a changed
// file needs no restart: docs/reference.md "Screen rules".
import { ANY_TYPE, type LoadedRules, type RuleSet } from '../../protocol/screen_rules.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';

export interface AgentRulesOptions {
  load: () => Promise<LoadedRules>;
  clock: Clock;
  /** Writes a line to the daemon's log. */
  report: (line: string) => void;
}

/** Agents that start within this time share one reading of the files. */
const FRESH_MS = 2_000;
const NO_RULES: RuleSet = { id: '', rules: [] };

/**
 * Returns a function from an agent's type (null: none) to its rules. Each fault of a file is reported once,
 * until it changes.
 */
export function agentRules({
  load,
  clock,
  report,
}: AgentRulesOptions): (type: string | null) => Promise<RuleSet> {
  let loaded: { rules: Promise<LoadedRules>; at: number } | null = null;
  let reported: ReadonlySet<string> = new Set();
  const loadNow = async (): Promise<LoadedRules> => {
    const found = await tolerateFailure(load(), ({ message }) => {
      report(`the rules for screens cannot be read: ${message}`);
      return { sets: [], faults: [] };
    });
    const lines = found.faults.map(({ file, line, message }) => `${file}:${line}: ${message}`);
    for (const line of lines) if (!reported.has(line)) report(`a rule for screens is left out: ${line}`);
    reported = new Set(lines);
    return found;
  };
  return async (type) => {
    const now = clock.monotonic();
    if (!loaded || now - loaded.at > FRESH_MS) loaded = { rules: loadNow(), at: now };
    const sets = new Map((await loaded.rules).sets);
    return sets.get(type ?? ANY_TYPE) ?? sets.get(ANY_TYPE) ?? NO_RULES;
  };
}
