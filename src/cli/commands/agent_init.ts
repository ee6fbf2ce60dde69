// berth agent init

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isOnPath } from '../../adapters/process/path_lookup.ts';
import { CODING_AGENTS } from '../../protocol/coding_agents.ts';
import { stateDirPath } from '../../settings/state_dir.ts';
import { statePaths } from '../../settings/state_paths.ts';
import {
  type PlannedEdit,
  SETUP_PROGRAMS,
  SETUP_TRACES,
  type SetupProgram,
  setupPlan,
} from '../kit/agent_setup.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import { isAgreed } from '../kit/confirm.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { UneditableError, withEdit, withoutEdit } from '../kit/file_edits.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { changeSetup, SetupRecord, textOfFile } from '../kit/setup_record.ts';

/** The current and the planned content of a file; null: the file does not exist. */
interface Change {
  file: string;
  before: string | null;
  after: string | null;
}

/** The programs that have files in this folder; if there are none, the installed ones. */
function programsHere(folder: string): SetupProgram[] {
  const traced = SETUP_PROGRAMS.filter((name) =>
    SETUP_TRACES[name].some((trace) => existsSync(join(folder, trace))),
  );
  if (traced.length > 0) return traced;
  return SETUP_PROGRAMS.filter((name) =>
    isOnPath(CODING_AGENTS[name].program, process.env['PATH'] ?? '', folder),
  );
}

const fileOf = (folder: string, { paths }: PlannedEdit): string => {
  const all = paths.map((path) => resolve(folder, path));
  return all.find((path) => existsSync(path)) ?? resolve(folder, paths[0]);
};

/** What the user must add to, or remove from, a file that cannot be edited. */
function byHand({ edit }: PlannedEdit): string {
  if (edit.kind === 'whole') return edit.text;
  if (edit.kind === 'block') return edit.lines;
  const value = edit.kind === 'value' ? edit.value : [edit.item];
  return JSON.stringify(
    edit.path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value),
    null,
    2,
  );
}

type Way = 'Add' | 'Remove';

/** Calls `change`. If `file` cannot be edited, rejects with a CommandError with what to do by hand. */
async function applied(
  file: string,
  way: Way,
  planned: PlannedEdit,
  change: () => void | Promise<void>,
): Promise<void> {
  try {
    await change();
  } catch (error) {
    if (!(error instanceof UneditableError)) throw error;
    const hint = `Nothing was changed. ${way} this by hand, and leave the file out:\n${byHand(planned)}`;
    throw new CommandError(`${file} is left as it is: ${error.message}`, hint);
  }
}

async function additions(folder: string, plan: readonly PlannedEdit[]): Promise<Change[]> {
  const changes = new Map<string, Change>();
  for (const planned of plan) {
    const file = fileOf(folder, planned);
    await applied(file, 'Add', planned, async () => {
      const before = textOfFile(file);
      const change = changes.get(file) ?? { file, before, after: before };
      change.after = await withEdit(change.after, planned.edit);
      changes.set(file, change);
    });
  }
  return [...changes.values()].filter(({ before, after }) => before !== after);
}

/** Restores the earlier content if nothing else has changed since; otherwise removes what was added. */
async function removals(
  folder: string,
  plan: readonly PlannedEdit[],
  record: SetupRecord,
): Promise<Change[]> {
  const changes = new Map<string, Change>();
  for (const planned of plan.toReversed()) {
    const file = fileOf(folder, planned);
    await applied(file, 'Remove', planned, () => {
      const before = textOfFile(file);
      if (before === null) return;
      const change = changes.get(file) ?? { file, before, after: before };
      if (change.after !== null)
        change.after = withoutEdit(change.after, planned.edit, record.original(file));
      changes.set(file, change);
    });
  }
  for (const change of changes.values()) {
    if (record.isUnchanged(change.file)) change.after = record.original(change.file);
  }
  return [...changes.values()].filter(({ before, after }) => before !== after);
}

/** Throws a CommandError unless every file still has the content that its change was made from. */
function checkUnchanged(changes: readonly Change[]): void {
  const edited = changes.find(({ file, before }) => textOfFile(file) !== before);
  if (edited)
    throw new CommandError(`${edited.file} has been edited meanwhile: nothing was changed`, 'Call it again.');
}

const linesOf = (text: string | null): string[] => (text === null ? [] : text.replace(/\n$/, '').split('\n'));

/** The lines that differ, with two lines of context on each side. */
function diffText({ file, before, after }: Change): string[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let same = 0;
  while (same < Math.min(old.length, fresh.length) && old[same] === fresh[same]) same += 1;
  let end = 0;
  while (end < Math.min(old.length, fresh.length) - same && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  const context = 2;
  const kind = before === null ? ' (new)' : after === null ? ' (removed)' : '';
  return [
    `${file}${kind}`,
    ...old.slice(Math.max(0, same - context), same).map((line) => `    ${line}`),
    ...old.slice(same, old.length - end).map((line) => `  - ${line}`),
    ...fresh.slice(same, fresh.length - end).map((line) => `  + ${line}`),
    ...fresh
      .slice(fresh.length - end)
      .slice(0, context)
      .map((line) => `    ${line}`),
  ];
}

export const agentInitCommand = defineCommand({
  about:
    'Has the coding agents of this project use Berth: writes the configuration of its MCP server, hooks ' +
    'that report what an agent is doing, and a short instruction into the files of each program. Shows what ' +
    'would change and asks. What you have in these files stays. Without a program, it sets up those whose ' +
    'files are in this folder, or else those that are installed.',
  options: {
    claude: flagOption('--claude', 'set up Claude Code'),
    codex: flagOption('--codex', 'set up Codex'),
    gemini: flagOption('--gemini', 'set up Gemini CLI'),
    opencode: flagOption('--opencode', 'set up opencode'),
    cursor: flagOption('--cursor', 'set up Cursor'),
    remove: flagOption('--remove', 'take back what was written'),
    yes: flagOption('-y, --yes', 'write without asking'),
  },
  examples: [
    ['berth agent init --claude', 'Claude Code in this project'],
    ['berth agent init --remove', 'everything as it was'],
  ],
  run: async (context, _args, { remove, yes, ...given }) => {
    const folder = process.cwd();
    const named = SETUP_PROGRAMS.filter((name) => given[name]);
    const programs = named.length > 0 ? named : remove ? SETUP_PROGRAMS : programsHere(folder);
    if (programs.length === 0)
      throw new UsageError(
        'no coding agent was found here',
        `Name one: ${SETUP_PROGRAMS.map((name) => `--${name}`).join(', ')}.`,
      );
    const stateDir = stateDirPath(context.globalOptions.stateDir, process.env);
    const plan = programs.flatMap(setupPlan);
    const changes = remove
      ? await removals(folder, plan, new SetupRecord(statePaths(stateDir).agentSetup))
      : await additions(folder, plan);
    const { out } = context;
    if (changes.length === 0) {
      out.record({ programs, changed: [] }, () => 'Nothing is to be changed.');
      return undefined;
    }
    for (const line of changes.flatMap(diffText)) out.errorLine(sanitizeLine(line));
    if (!yes && !(await isAgreed(context, 'Write this?'))) {
      out.note('Nothing was changed.');
      return undefined;
    }
    await changeSetup(stateDir, (record) => {
      checkUnchanged(changes);
      for (const { file, after } of changes) {
        if (remove) record.giveBack(file, after);
        else if (after !== null) record.write(file, after);
      }
    });
    const changed = changes.map(({ file }) => file);
    const done = remove
      ? 'It is taken back.'
      : `${programs.join(', ')} will use Berth from the next start on.`;
    out.record({ programs, changed }, () => done);
    return undefined;
  },
});
