// What a user gives of the process to be made: its command line and its environment.
import { UsageError } from './exit_codes.ts';

/** One word for the shell: quoted when it has to be. */
const quoteShellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** One word is a whole command line; several are taken word for word. '' of none. */
export const commandLine = (words: readonly string[]): string =>
  words.length === 1 ? (words[0] ?? '') : words.map(quoteShellWord).join(' ');

/** `KEY=value` entries, or names whose values are passed on from here. Throws a UsageError. */
export function parseEnvEntries(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const equals = entry.indexOf('=');
      if (equals > 0) return [entry.slice(0, equals), entry.slice(equals + 1)];
      const value = process.env[entry];
      if (value !== undefined) return [entry, value];
      throw new UsageError(`--env ${entry}: must be KEY=value, or the name of a variable that is set here`);
    }),
  );
}
