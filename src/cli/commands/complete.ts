// berth __complete: prints one completion per line: the word, a tab and its description. `:file` makes the
// shell complete file names.
import type { Client } from '../../client/create_client.ts';
import { findLocalDaemon } from '../../client/local_daemon.ts';
import { type Command, type CompletionSource, defineCommand } from '../kit/command.ts';
import { type CommandTable, loadCommand } from '../kit/command_table.ts';
import type { GlobalOptions } from '../kit/context.ts';
import { commandWords, GLOBAL_OPTIONS } from '../kit/global_options.ts';
import { workloadName } from '../kit/k8s_lookup.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { type StackChoice, stackScope } from '../kit/stack_scope.ts';

type Candidate = [word: string, about: string];

const valueAfter = (words: readonly string[], flag: string): string | undefined =>
  words.includes(flag) ? words[words.indexOf(flag) + 1] : undefined;

/** After this time the command prints no completions, because late ones would block the shell. */
const DEADLINE_MS = 400;

/** The names of the services that fit, as the command takes them with the stack of `choice`. */
async function serviceCandidates(
  client: Client,
  choice: StackChoice,
  fits: (alive: boolean) => boolean,
): Promise<Candidate[]> {
  const [all, { label, has }] = await Promise.all([client.services(), stackScope(client, choice)]);
  return all
    .filter((service) => has(service) && fits(service.pid !== undefined))
    .map(({ name, status, url }) => [label(name), url === null ? status : `${status} ${url}`]);
}

type NameSource = Extract<CompletionSource, string>;
type LocalSource = 'project' | 'file';

/** What needs no daemon, by the words of the command line. */
const LOCAL_SOURCES: Record<LocalSource, (words: readonly string[]) => Promise<Candidate[]>> = {
  project: async (words) => {
    // The command that takes these names has loaded it already.
    const { projectServiceNames } = await import('../project_commands.ts');
    const names = await projectServiceNames(valueAfter(words, '-f') ?? valueAfter(words, '--file'));
    return names.map((name) => [name, '']);
  },
  file: async () => [[':file', '']],
};

const isLocal = (source: NameSource): source is LocalSource => source in LOCAL_SOURCES;

/** Lists the names of each kind. */
const NAME_SOURCES: Record<
  Exclude<NameSource, LocalSource>,
  (client: Client, choice: StackChoice) => Promise<Candidate[]>
> = {
  service: (client, choice) => serviceCandidates(client, choice, () => true),
  running: (client, choice) => serviceCandidates(client, choice, (alive) => alive),
  stopped: (client, choice) => serviceCandidates(client, choice, (alive) => !alive),
  group: async (client) => {
    const [all, { label, hasGroup }] = await Promise.all([client.groups(), stackScope(client, {})]);
    return all
      .filter(({ name }) => hasGroup(name))
      .map(({ name, running, services }) => [label(name), `${running} of ${services} running`]);
  },
  stack: async (client) =>
    (await client.stacks()).map(({ name, running, services }) => [name, `${running} of ${services} running`]),
  agent: async (client) => {
    const [all, { label }] = await Promise.all([client.agents(), stackScope(client, {})]);
    return all.map(({ name, active }) => [label(name), active ? 'active' : 'ended']);
  },
  cluster: async (client) => (await client.cloud.clusters()).map(({ name, provider }) => [name, provider]),
  workload: async (client) => (await client.cloud.workloads()).map((one) => [workloadName(one), one.state]),
  tether: async (client) =>
    (await client.cloud.tethers()).map((one) => [
      String(one.local_port ?? one.tether_id),
      one.label ?? one.state,
    ]),
};

/** The stack that the words of the command line choose. */
const stackChoiceOf = (words: readonly string[]): StackChoice => ({
  stack: valueAfter(words, '--stack'),
  project: valueAfter(words, '--project'),
  all: words.includes('-A') || words.includes('--all'),
});

async function candidatesFor(
  completes: CompletionSource | undefined,
  globals: GlobalOptions,
  before: readonly string[],
): Promise<Candidate[]> {
  if (completes === undefined) return [];
  if (typeof completes !== 'string') return completes.map((word): Candidate => [word, '']);
  try {
    if (isLocal(completes)) return await LOCAL_SOURCES[completes](before);
    const { client } = await findLocalDaemon({ ...globals, deadlineMs: DEADLINE_MS });
    return await NAME_SOURCES[completes](client, stackChoiceOf(before));
  } catch {
    // Without a daemon, or a valid project file, there are no names. A message would end up in the user's
    // command line.
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
    about: 'show the help',
    completes: undefined,
  };
  return [...own, ...everywhere, help];
}

/** The commands that may follow `before`: first words, or second words of a family. */
function commandCandidates({ rows, families }: CommandTable, before: readonly string[]): Candidate[] {
  const [family] = before;
  if (before.length > 1) return [];
  if (family !== undefined) {
    const members = rows.filter(({ name }) => name.startsWith(`${family} `));
    return members.map(({ name, summary }): Candidate => [name.slice(family.length + 1), summary]);
  }
  const single = rows.filter(({ name, isHidden }) => !name.includes(' ') && !isHidden && !families.has(name));
  return [...single.map(({ name, summary }): Candidate => [name, summary]), ...families];
}

/** The number of arguments among the words, without the command, options and their values. */
function countArguments(
  words: readonly string[],
  options: readonly KnownOption[],
  commandWords: number,
): number {
  let found = 0;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const option = options.find(({ flags }) => flags.includes(word));
    if (option?.takesValue) at += 1;
    else if (!word.startsWith('-')) found += 1;
  }
  return found - commandWords;
}

/** The completions of the last of `words`, the one being typed. */
export async function completionsOf(
  table: CommandTable,
  words: readonly string[],
  globals: GlobalOptions,
): Promise<Candidate[]> {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const begins = ([word]: Candidate): boolean => word.startsWith(current) || word === ':file';
  if (before.includes('--')) return [[':file', '']];
  if (before[0] === 'help') return commandCandidates(table, before.slice(1)).filter(begins);
  const named = commandWords(before);
  const called = await loadCommand(table, named);
  const options = knownOptions(called?.command);
  const previous = options.find(({ flags, takesValue }) => takesValue && flags.includes(before.at(-1) ?? ''));
  if (previous) return (await candidatesFor(previous.completes, globals, before)).filter(begins);
  if (current.startsWith('-')) {
    return options
      .flatMap(({ flags, about }) =>
        flags.filter((flag) => flag.startsWith('--')).map((flag): Candidate => [flag, about]),
      )
      .filter(begins);
  }
  if (!called) return commandCandidates(table, named).filter(begins);
  const { row, command } = called;
  const isOneWord = !row.name.includes(' ') && named.length === 1;
  const members = isOneWord ? commandCandidates(table, [row.name]) : [];
  const at = countArguments(before, options, row.name.split(' ').length);
  const takes = command.args ?? [];
  const last = takes.at(-1);
  const argument = takes[at] ?? (last?.syntax.includes('...') ? last : undefined);
  const values = await candidatesFor(argument?.completes, globals, before);
  const isNew = ([word]: Candidate): boolean => !before.includes(word);
  return [...members, ...values].filter((candidate) => begins(candidate) && isNew(candidate));
}

/** The command that the completion scripts call. It is itself a row of `table`. */
export const completeCommand = (table: CommandTable): Command =>
  defineCommand({
    args: [{ syntax: '[words...]', about: 'the words so far, the last one being typed' }],
    run: async (context, words) => {
      for (const [word, about] of await completionsOf(table, words, context.globalOptions))
        context.out.line(sanitizeLine(word) + (about ? `\t${sanitizeLine(about)}` : ''));
    },
  });
