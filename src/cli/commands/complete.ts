// berth __complete: what could come next. One line each, the word and after a tab what it is; `:file` asks the shell for files.
import type { Client } from '../../client/create_client.ts';
import { findLocalDaemon } from '../../client/local_daemon.ts';
import { COMMANDS, FAMILIES, findCommand } from '../commands.ts';
import { type Command, type CompletionSource, defineCommand } from '../kit/command.ts';
import type { CommandContext, GlobalOptions } from '../kit/context.ts';
import { commandWords, GLOBAL_OPTIONS } from '../kit/global_options.ts';
import { workloadName } from '../kit/k8s_lookup.ts';
import { sanitizeLine } from '../kit/sanitize.ts';

type Candidate = [word: string, about: string];

/** A Tab that takes longer than this is worse than one without an answer. */
const DEADLINE_MS = 400;

const serviceCandidates = async (berth: Client, fits: (alive: boolean) => boolean): Promise<Candidate[]> =>
  (await berth.services())
    .filter(({ pid }) => fits(pid !== undefined))
    .map(({ name, status, url }) => [name, `${status} ${url}`]);

/** What stands behind each kind of name. */
const NAME_SOURCES: Record<Extract<CompletionSource, string>, (berth: Client) => Promise<Candidate[]>> = {
  service: (berth) => serviceCandidates(berth, () => true),
  running: (berth) => serviceCandidates(berth, (alive) => alive),
  stopped: (berth) => serviceCandidates(berth, (alive) => !alive),
  group: async (berth) =>
    (await berth.groups()).map((group) => [group.name, `${group.running} of ${group.services} running`]),
  agent: async (berth) =>
    (await berth.agents()).map(({ name, active }) => [name, active ? 'active' : 'ended']),
  cluster: async (berth) => (await berth.cloud.clusters()).map(({ name, provider }) => [name, provider]),
  workload: async (berth) => (await berth.cloud.workloads()).map((one) => [workloadName(one), one.state]),
  tether: async (berth) =>
    (await berth.cloud.tethers()).map((one) => [
      String(one.local_port ?? one.tether_id),
      one.label ?? one.state,
    ]),
  file: async () => [[':file', '']],
};

async function candidatesFor(
  completes: CompletionSource | undefined,
  globals: GlobalOptions,
): Promise<Candidate[]> {
  if (completes === undefined) return [];
  if (typeof completes !== 'string') return completes.map((word): Candidate => [word, '']);
  try {
    const { client } = await findLocalDaemon({ ...globals, deadlineMs: DEADLINE_MS });
    return await NAME_SOURCES[completes](client);
  } catch {
    // Without a daemon there are no names; a message would end up in the command line.
    return [];
  }
}

/** The flags of an option, and whether it takes a value: `-n, --lines <count>`. */
const parseFlags = (text: string): { flags: string[]; takesValue: boolean } => ({
  flags: text.split(/[ ,]+/).filter((part) => part.startsWith('-')),
  takesValue: text.includes('<'),
});

interface KnownOption {
  flags: string[];
  takesValue: boolean;
  about: string;
  completes: CompletionSource | undefined;
}

function knownOptions(called: Command | undefined): KnownOption[] {
  const own = Object.values(called?.options ?? {}).map((option) => ({
    ...parseFlags(option.flags),
    about: option.about,
    completes: option.completes,
  }));
  const everywhere = GLOBAL_OPTIONS.map(({ flags, about, completes }) => ({
    ...parseFlags(flags),
    about,
    completes,
  }));
  const help: KnownOption = {
    flags: ['-h', '--help'],
    takesValue: false,
    about: 'print the help',
    completes: undefined,
  };
  return [...own, ...everywhere, help];
}

/** The commands that may follow `before`: first words, or second words of a family. */
function commandCandidates(before: readonly string[]): Candidate[] {
  const [family] = before;
  if (before.length > 1) return [];
  if (family !== undefined) {
    const rows = COMMANDS.filter(({ name }) => name.startsWith(`${family} `));
    return rows.map(({ name, summary }): Candidate => [name.slice(family.length + 1), summary]);
  }
  const single = COMMANDS.filter(
    ({ name, isHidden }) => !name.includes(' ') && !isHidden && !FAMILIES.has(name),
  );
  return [...single.map(({ name, summary }): Candidate => [name, summary]), ...FAMILIES];
}

/** How many of the words are arguments: neither the command, nor options, nor their values. */
function countArguments(
  given: readonly string[],
  options: readonly KnownOption[],
  commandWords: number,
): number {
  let found = 0;
  for (let at = 0; at < given.length; at += 1) {
    const word = given[at] ?? '';
    const option = options.find(({ flags }) => flags.includes(word));
    if (option?.takesValue) at += 1;
    else if (!word.startsWith('-')) found += 1;
  }
  return found - commandWords;
}

/** Every offer that begins with the last of `given`, the word being typed. */
export async function completionsOf(given: readonly string[], globals: GlobalOptions): Promise<Candidate[]> {
  const current = given.at(-1) ?? '';
  const before = given.slice(0, -1);
  const begins = ([word]: Candidate): boolean => word.startsWith(current) || word === ':file';
  if (before.includes('--')) return [[':file', '']];
  const [first, second] = commandWords(before);
  const row = first === undefined ? undefined : findCommand(first, second);
  const called = await row?.load();
  const options = knownOptions(called);
  const previous = options.find(({ flags, takesValue }) => takesValue && flags.includes(before.at(-1) ?? ''));
  if (previous) return (await candidatesFor(previous.completes, globals)).filter(begins);
  if (current.startsWith('-')) {
    return options
      .flatMap(({ flags, about }) =>
        flags.filter((flag) => flag.startsWith('--')).map((flag): Candidate => [flag, about]),
      )
      .filter(begins);
  }
  const inner = row && !row.name.includes(' ') && second === undefined ? commandCandidates([row.name]) : [];
  if (!row || !called) return commandCandidates(commandWords(before)).filter(begins);
  const at = countArguments(before, options, row.name.split(' ').length);
  const rows = called.args ?? [];
  const last = rows.at(-1);
  const argument = rows[at] ?? (last?.syntax.includes('...') ? last : undefined);
  const named = await candidatesFor(argument?.completes, globals);
  const isNew = ([word]: Candidate): boolean => !before.includes(word);
  return [...inner, ...named].filter((offer) => begins(offer) && isNew(offer));
}

export const completeCommand = defineCommand({
  args: [{ syntax: '[words...]', about: 'the words so far, the last one being typed' }],
  run: async (cli: CommandContext, given) => {
    for (const [word, about] of await completionsOf(given, cli.globalOptions))
      cli.out.line(sanitizeLine(`${word}`) + (about ? `\t${sanitizeLine(about)}` : ''));
  },
});
