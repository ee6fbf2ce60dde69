// The options that every command takes, and the words of a call that name the command.
import type { CompletionSource } from './command.ts';
import { FORMATS } from './output.ts';

export const GLOBAL_OPTIONS: readonly { flags: string; about: string; completes?: CompletionSource }[] = [
  { flags: '--json', about: 'print JSON; same as -o json' },
  {
    flags: '-o, --output <format>',
    about: `output format: ${FORMATS.join(', ')} (one object per line)`,
    completes: FORMATS,
  },
  { flags: '--url <url>', about: 'URL of the daemon (BERTH_URL)' },
  { flags: '--state-dir <dir>', about: 'state directory (BERTH_STATE_DIR)', completes: 'file' },
  { flags: '--config <file>', about: 'configuration file (BERTH_CONFIG)', completes: 'file' },
];

const FLAGS_WITH_VALUE = new Set(
  GLOBAL_OPTIONS.filter(({ flags }) => flags.includes('<')).flatMap(({ flags }) =>
    flags.split(/[ ,]+/).filter((part) => part.startsWith('-')),
  ),
);

/** The indexes in `argv` of the first two words that are neither options nor their values. */
function commandWordIndexes(argv: readonly string[]): number[] {
  const found: number[] = [];
  for (let at = 0; at < argv.length && found.length < 2; at += 1) {
    const word = argv[at] ?? '';
    if (word === '--') break;
    if (FLAGS_WITH_VALUE.has(word)) at += 1;
    else if (!word.startsWith('-')) found.push(at);
  }
  return found;
}

/** The first two words that are neither options nor their values: the name of the command. */
export const commandWords = (argv: readonly string[]): string[] =>
  commandWordIndexes(argv).map((at) => argv[at] ?? '');

/** `argv` with an alias replaced by the command's own name. */
export function withCommandName(argv: readonly string[], name: string): string[] {
  const changed = [...argv];
  const indexes = commandWordIndexes(argv);
  for (const [position, word] of name.split(' ').entries()) {
    const at = indexes[position];
    if (at !== undefined) changed[at] = word;
  }
  return changed;
}
