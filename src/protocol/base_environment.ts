// The base environment of services: docs/reference.md "Environment of a process".

export type EnvironmentRows = [key: string, value: string][];

/**
 * Variables that belong to one terminal, one login or one run of a program, not to a project. A change of
 * them alone must not make a service look changed, and most are wrong for what outlives the terminal.
 */
const LEFT_OUT: readonly RegExp[] = [
  // The shell
  /^(_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|PS[0-4]|PROMPT|PROMPT_COMMAND|HISTFILE)$/,
  // Terminals and what runs in them
  /^(TERM|SSH_|TMUX|ZELLIJ|VTE_|KITTY_|WEZTERM_|ALACRITTY_|GHOSTTY_|KONSOLE_|ITERM_|GNOME_TERMINAL_)/,
  /^(WINDOWID|STY|WINDOW|COLORTERM|COLORFGBG|GPG_TTY|LC_TERMINAL|LC_TERMINAL_VERSION|SECURITYSESSIONID)$/,
  /^(WT_|VSCODE_|CURSOR_|CLAUDECODE$|CLAUDE_CODE_(ENTRYPOINT|SSE_PORT)$)/,
  // Logins and service managers
  /^(XDG_(SESSION|SEAT|VTNR)|LISTEN_|WATCHDOG_)/,
  /^(INVOCATION_ID|JOURNAL_STREAM|MANAGERPID|SYSTEMD_EXEC_PID|NOTIFY_SOCKET|MAINPID)$/,
  // Berth, and programs that run it
  /^(BERTH_|npm_|NODE_CHANNEL_|INIT_CWD$|GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX)$)/,
];

/** `rows` without the variables that no service starts from. */
export const withoutSession = (rows: readonly [key: string, value: string][]): EnvironmentRows =>
  rows.filter(([key]) => !LEFT_OUT.some((pattern) => pattern.test(key)));

/** The base environment that the shell of a command gives its services. */
export function shellEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const rows = Object.entries(env).filter((row): row is [string, string] => row[1] !== undefined);
  return Object.fromEntries(withoutSession(rows));
}

/** What a daemon in the background has of the environment of the command that starts it. */
const DAEMON_KEEPS = /^(HOME|USER|LOGNAME|SHELL|LANG|TZ)$|^(LC_|XDG_|BERTH_)/;
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The environment of a daemon in the background, which serves more shells than the one that starts it. */
export function cleanEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(env).filter(([key, value]) => value !== undefined && DAEMON_KEEPS.test(key));
  return { ...Object.fromEntries(kept.map(([key, value]) => [key, value ?? ''])), PATH: DEFAULT_PATH };
}
