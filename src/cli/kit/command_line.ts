// The command line and the environment that a user gives for a new process.
import { quoteShellWord } from '../../protocol/shell_word.ts';
import { UsageError } from './exit_codes.ts';

/** A single word is the whole command line; several are quoted and joined. '' for none. */
export const commandLine = (words: readonly string[]): string =>
  words.length === 1 ? (words[0] ?? '') : words.map(quoteShellWord).join(' ');

/** Reads `KEY=value` entries; a name alone takes its value from this environment. Throws a UsageError. */
export function parseEnvEntries(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const equals = entry.indexOf('=');
      if (equals > 0) return [entry.slice(0, equals), entry.slice(equals + 1)];
      const value = process.env[entry];
      if (value !== undefined) return [entry, value];
      throw new UsageError(`--env ${entry}: must be KEY=value, or the name of a variable that is set`);
    }),
  );
}
