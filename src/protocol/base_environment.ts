// The base environment of services: docs/reference.md "Environment of a process".

export type EnvironmentRows = [key: string, value: string][];

/**
 * Variables that belong to one terminal, login or program run rather than to a project. A change in them must
 * not make a service look changed, and most are wrong for a process that outlives the terminal.
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

/** `rows` without the variables that no service inherits. */
export const withoutSession = (rows: readonly [key: string, value: string][]): EnvironmentRows =>
  rows.filter(([key]) => !LEFT_OUT.some((pattern) => pattern.test(key)));

/** The base environment that a command's shell gives to the services it registers. */
export function shellEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const rows = Object.entries(env).filter((row): row is [string, string] => row[1] !== undefined);
  return Object.fromEntries(withoutSession(rows));
}

/** What a background daemon keeps of the environment of the command that starts it. */
const DAEMON_KEEPS = /^(HOME|USER|LOGNAME|SHELL|LANG|TZ|NODE_EXTRA_CA_CERTS)$|^(LC_|XDG_|BERTH_)/;
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The environment for a background daemon, which serves other shells than the one that started it. */
export function cleanEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(env).filter(([key, value]) => value !== undefined && DAEMON_KEEPS.test(key));
  return { ...Object.fromEntries(kept.map(([key, value]) => [key, value ?? ''])), PATH: DEFAULT_PATH };
}
