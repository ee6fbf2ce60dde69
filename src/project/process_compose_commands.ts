// The commands of a process-compose file, which bash runs unless the file names another shell.
import type { YamlNode } from '../adapters/yaml.ts';
import { quoteShellWord } from '../protocol/shell_word.ts';
import { listItems, nodeAt, scalarText } from './lenient_yaml.ts';

/** Shells that run a program as /bin/sh does. */
const SIMILAR_SHELL = /(?:^|\/)(?:ba|da|k|z)?sh$/;

const VARIABLE = '\\$\\{[A-Za-z_]\\w*\\}';
const WORD = `(?:[\\w@%+=:,./-]|${VARIABLE}|'[^']*'|"(?:[^"$\`\\\\]|${VARIABLE})*")+`;
/** A program and its arguments, after variables for it: without anything that shells read differently. */
const PROGRAM = new RegExp(`^(?:\\w+=(?:${WORD})? +)*(?:exec +(?!-))?(?!\\w+=)(${WORD})(?: +${WORD})*$`);

/** What bash runs by itself. */
const BUILTINS: ReadonlySet<string> = new Set([
  ...['.', ':', 'alias', 'bg', 'bind', 'break', 'builtin', 'caller', 'case', 'cd', 'command', 'compgen'],
  ...['complete', 'compopt', 'continue', 'coproc', 'declare', 'dirs', 'disown', 'do', 'done', 'echo'],
  ...['elif', 'else', 'enable', 'esac', 'eval', 'exec', 'exit', 'export', 'false', 'fc', 'fg', 'fi'],
  ...['for', 'function', 'getopts', 'hash', 'help', 'history', 'if', 'in', 'jobs', 'kill', 'let'],
  ...['local', 'logout', 'mapfile', 'popd', 'printf', 'pushd', 'pwd', 'read', 'readarray', 'readonly'],
  ...['return', 'select', 'set', 'shift', 'shopt', 'source', 'suspend', 'test', 'then', 'time', 'times'],
  ...['trap', 'true', 'type', 'typeset', 'ulimit', 'umask', 'unalias', 'unset', 'until', 'wait', 'while'],
]);

/** Whether all shells run `command` in the same way. */
function isProgram(command: string): boolean {
  const program = PROGRAM.exec(command)?.[1];
  return program !== undefined && !BUILTINS.has(program.replace(/["']/g, ''));
}

/** The command for /bin/sh that runs a command of the file as process-compose does. */
export type ShellCommand = (command: string) => string;

/** For the file `tree`, which may name a shell, as may `COMPOSE_SHELL`. A program alone stays as it is. */
export function shellCommandIn(tree: YamlNode): ShellCommand {
  const shell = scalarText(nodeAt(tree, 'shell', 'shell_command')) ?? process.env['COMPOSE_SHELL'] ?? 'bash';
  const option = scalarText(nodeAt(tree, 'shell', 'shell_argument')) ?? '-c';
  const start = `exec ${quoteShellWord(shell)} ${quoteShellWord(option)}`;
  const isSimilar = SIMILAR_SHELL.test(shell) && option === '-c';
  const isSh = isSimilar && /(?:^|\/)sh$/.test(shell);
  return (command) =>
    isSh || (isSimilar && isProgram(command.trim())) ? command : `${start} ${quoteShellWord(command)}`;
}

/** The command of the process `value`: its own, or its program without a shell; undefined for none. */
export function processCommand(value: YamlNode): string | undefined {
  const words = listItems(nodeAt(value, 'entrypoint')).map((item) => scalarText(item) ?? '');
  const program = words.length > 0 ? `exec ${words.map(quoteShellWord).join(' ')}` : undefined;
  return scalarText(nodeAt(value, 'command')) || program;
}
