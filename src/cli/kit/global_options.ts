// The options that every command takes, and where among the words the command's name is.
import type { CompletionSource } from './command.ts';
import { FORMATS } from './output.ts';

export const GLOBAL_OPTIONS: readonly { flags: string; about: string; completes?: CompletionSource }[] = [
  { flags: '--json', about: 'print JSON, the same as -o json' },
  {
    flags: '-o, --output <format>',
    about: `how to print: ${FORMATS.join(', ')} (one object per line)`,
    completes: FORMATS,
  },
  { flags: '--url <url>', about: 'the daemon to talk to (BERTH_URL)' },
  { flags: '--state-dir <dir>', about: 'the state directory (BERTH_STATE_DIR)', completes: 'file' },
  { flags: '--config <file>', about: 'the configuration file (BERTH_CONFIG)', completes: 'file' },
];

const FLAGS_WITH_VALUE = new Set(
  GLOBAL_OPTIONS.filter(({ flags }) => flags.includes('<')).flatMap(({ flags }) =>
    flags.split(/[ ,]+/).filter((part) => part.startsWith('-')),
  ),
);

/** The first two words that are no options: the name of the command. */
export function commandWords(argv: readonly string[]): string[] {
  const found: string[] = [];
  for (let at = 0; at < argv.length && found.length < 2; at += 1) {
    const word = argv[at] ?? '';
    if (word === '--') break;
    if (FLAGS_WITH_VALUE.has(word)) at += 1;
    else if (!word.startsWith('-')) found.push(word);
  }
  return found;
}
