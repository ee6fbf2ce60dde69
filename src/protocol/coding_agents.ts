// The table of coding agents, with how each is used in its terminal. docs/reference.md "Agent types". The
// rules for reading their screens are in src/agent-rules.
import type { SessionFlags } from './agent_sessions.ts';
import type { AgentStateName, StateAuthority } from './agent_state.ts';

/** How a prompt is typed into the terminal: docs/reference.md "Agent types". */
export interface PromptTyping {
  /**
   * Whether text is sent as a bracketed paste (DEC mode 2004) while the program has that mode on; otherwise
   * it is typed.
   */
  readonly bracketedPaste: boolean;
  /**
   * Milliseconds between the text and the submitting key: some programs take a fast Enter for part of the
   * text.
   */
  readonly pauseMs: number;
  /** The key that submits the prompt, as named by `POST .../keys`. */
  readonly submit: string;
  /**
   * The key for a new line within a typed prompt; null: there is none, because Enter would submit the prompt.
   */
  readonly newline: string | null;
  /**
   * A busy program may take the submitting key for a newline. It is pressed again if the screen shows that.
   */
  readonly maySubmitLate?: true;
  /**
   * The characters that open a list of completions at the end of the text. Enter would choose from it, so a
   * space is typed after the text, which closes the list.
   */
  readonly completes?: string;
  /** The submitting key after a backslash is a newline. A space is typed after a backslash at the end. */
  readonly continuesLines?: true;
  /**
   * The keys that delete up to the beginning and up to the end of a line, for a program that keeps a text
   * that it refuses, such as an unknown command.
   */
  readonly deletes?: readonly string[];
}

/** How `berth agent init` makes the program report its state. */
export interface HookFile {
  /** The program's hooks file, relative to the project, or to the home directory after `~/`. */
  readonly file: string;
  /** The format of the file. */
  readonly format: 'claude' | 'gemini' | 'codex' | 'cursor' | 'copilot' | 'opencode';
  /** The state that each hook event stands for. */
  readonly events: Readonly<Record<string, AgentStateName>>;
  /**
   * A variable that the program sets for the commands in its shell, and not for its own hooks: a hook that
   * has it is of a nested program of the same type. Absent: none is known.
   */
  readonly shellVariable?: string;
  /** Hook events that an earlier version used, and that are to be removed. */
  readonly earlierEvents?: readonly string[];
}

export interface CodingAgent {
  /** The program that must be in PATH. */
  readonly program: string;
  /** The shell command that starts it. */
  readonly cmd: string;
  /** The command that installs the program. */
  readonly install: string;
  /** The sources that know its state, in their order. */
  readonly authorities: readonly StateAuthority[];
  /** What its screen rules are based on: recorded screens of the running program, or its documentation. */
  readonly rules: 'recorded' | 'documented';
  readonly prompt: PromptTyping;
  /** null: its conversations cannot be continued by a later process. */
  readonly session: SessionFlags | null;
  /** null: it has no hooks that Berth can install. */
  readonly hooks: HookFile | null;
}

const ALL: readonly StateAuthority[] = ['hook', 'osc', 'screen', 'output'];
const WITHOUT_HOOK: readonly StateAuthority[] = ['osc', 'screen', 'output'];
const PASTED: PromptTyping = { bracketedPaste: true, pauseMs: 150, submit: 'Enter', newline: null };
/** Since 2.1.0 claude, since 1.0.44 copilot, and cursor complete commands anywhere in a text. */
const COMPLETES_COMMANDS = '@/';
const LINE_KEYS = ['C-u', 'C-k'];
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

/** Conversations of this folder updated since `$SINCE`, without those of sub-agents. */
const OPENCODE_SESSIONS =
  'opencode db "select id, title from session where parent_id is null and time_updated >= $SINCE and ' +
  `directory = '$(pwd | sed "s/'/''/g")' order by time_updated desc limit 9" | tail -n +2`;

export const CODING_AGENTS = {
  claude: {
    program: 'claude',
    cmd: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    authorities: ALL,
    rules: 'documented',
    prompt: { ...PASTED, newline: 'M-Enter', completes: COMPLETES_COMMANDS, continuesLines: true },
    session: {
      resume: '--resume "$SESSION"',
      begin: '--session-id "$SESSION"',
      find: {
        keptFile: { variable: 'CLAUDE_CONFIG_DIR', otherwise: '.claude', glob: 'projects/*/$SESSION.jsonl' },
      },
    },
    hooks: {
      file: '.claude/settings.local.json',
      format: 'claude',
      events: {
        SessionStart: 'idle',
        UserPromptSubmit: 'working',
        PreToolUse: 'working',
        PostToolUse: 'working',
        PermissionRequest: 'blocked',
        Stop: 'idle',
      },
    },
  },
  codex: {
    program: 'codex',
    // A server shared by several agents would outlive them and keep their conversations to itself.
    cmd: 'codex --no-daemon',
    install: 'npm install -g @openai/codex',
    authorities: ALL,
    rules: 'recorded',
    // `$` completes skills.
    prompt: { ...PASTED, newline: 'C-j', completes: '@$', deletes: LINE_KEYS },
    session: {
      resume: 'resume "$SESSION"',
      begin: null,
      find: { openFile: `/sessions/.*/rollout-[^/]*(${UUID})\\.jsonl$` },
    },
    hooks: {
      file: '.codex/hooks.json',
      format: 'codex',
      shellVariable: 'CODEX_THREAD_ID',
      events: {
        UserPromptSubmit: 'working',
        PreToolUse: 'working',
        PostToolUse: 'working',
        PermissionRequest: 'blocked',
        Stop: 'idle',
      },
      // It runs with the first prompt, and so while the agent works.
      earlierEvents: ['SessionStart'],
    },
  },
  gemini: {
    program: 'gemini',
    cmd: 'gemini',
    install: 'npm install -g @google/gemini-cli',
    authorities: ALL,
    rules: 'recorded',
    // It takes an Enter soon after a paste for a newline, and may be slow to notice that time has passed.
    prompt: {
      ...PASTED,
      pauseMs: 500,
      newline: 'C-j',
      maySubmitLate: true,
      completes: '@',
      continuesLines: true,
    },
    session: {
      resume: '--resume "$SESSION"',
      begin: '--session-id "$SESSION"',
      find: {
        keptFile: {
          variable: 'GEMINI_CLI_HOME',
          otherwise: '',
          glob: '.gemini/tmp/*/chats/session-*-$BRIEF.json*',
        },
      },
    },
    hooks: {
      file: '.gemini/settings.json',
      format: 'gemini',
      shellVariable: 'GEMINI_CLI',
      events: {
        SessionStart: 'idle',
        BeforeAgent: 'working',
        BeforeTool: 'working',
        AfterTool: 'working',
        Notification: 'blocked',
        AfterAgent: 'idle',
      },
    },
  },
  opencode: {
    program: 'opencode',
    cmd: 'opencode',
    install: 'npm install -g opencode-ai',
    authorities: ALL,
    rules: 'recorded',
    prompt: { ...PASTED, newline: 'C-j', completes: '@', deletes: LINE_KEYS },
    session: { resume: '--session "$SESSION"', begin: null, find: { command: OPENCODE_SESSIONS } },
    hooks: {
      file: '.opencode/plugin/berth.js',
      format: 'opencode',
      events: {
        'session.status:busy': 'working',
        'permission.asked': 'blocked',
        'permission.replied': 'working',
        'session.idle': 'idle',
      },
    },
  },
  cursor: {
    program: 'cursor-agent',
    cmd: 'cursor-agent',
    install: 'curl -fsS https://cursor.com/install | bash',
    authorities: ALL,
    rules: 'documented',
    prompt: { ...PASTED, completes: COMPLETES_COMMANDS },
    session: { resume: '--resume "$SESSION"', begin: null, find: null },
    hooks: {
      file: '.cursor/hooks.json',
      format: 'cursor',
      events: { sessionStart: 'idle', beforeSubmitPrompt: 'working', stop: 'idle' },
    },
  },
  copilot: {
    program: 'copilot',
    cmd: 'copilot',
    install: 'npm install -g @github/copilot',
    authorities: ALL,
    rules: 'documented',
    prompt: { ...PASTED, completes: COMPLETES_COMMANDS },
    session: { resume: '--resume "$SESSION"', begin: null, find: null },
    hooks: {
      file: '.github/hooks/berth.json',
      format: 'copilot',
      events: {
        sessionStart: 'idle',
        userPromptSubmitted: 'working',
        preToolUse: 'working',
        postToolUse: 'working',
      },
    },
  },
  amp: {
    program: 'amp',
    cmd: 'amp',
    install: 'npm install -g @sourcegraph/amp',
    authorities: WITHOUT_HOOK,
    rules: 'documented',
    prompt: { ...PASTED, completes: '@' },
    session: { resume: 'threads continue "$SESSION"', begin: null, find: null },
    hooks: null,
  },
  aider: {
    program: 'aider',
    cmd: 'aider',
    install: 'python3 -m pip install aider-install && aider-install',
    authorities: WITHOUT_HOOK,
    rules: 'documented',
    prompt: { ...PASTED, newline: 'M-Enter' },
    session: null,
    hooks: null,
  },
  goose: {
    program: 'goose',
    cmd: 'goose session',
    install: 'curl -fsSL https://github.com/block/goose/releases/download/stable/download_cli.sh | bash',
    authorities: WITHOUT_HOOK,
    rules: 'documented',
    prompt: { ...PASTED, newline: 'C-j' },
    session: { resume: '--resume --session-id "$SESSION"', begin: null, find: null },
    hooks: null,
  },
  shell: {
    program: 'sh',
    cmd: 'exec "${SHELL:-/bin/sh}"',
    install: 'apt-get install bash',
    authorities: WITHOUT_HOOK,
    rules: 'documented',
    prompt: { bracketedPaste: true, pauseMs: 0, submit: 'Enter', newline: 'Enter' },
    session: null,
    hooks: null,
  },
} as const satisfies Readonly<Record<string, CodingAgent>>;
