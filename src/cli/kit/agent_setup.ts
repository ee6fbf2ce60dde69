// What `berth agent init` writes for each program, as data: docs/reference.md "Agent init".
import { isDeepStrictEqual } from 'node:util';
import { CODING_AGENTS, type HookFile } from '../../protocol/coding_agents.ts';
import type { FileEdit } from './file_edits.ts';

/** The programs that can be set up. */
export const SETUP_PROGRAMS = ['claude', 'codex', 'gemini', 'opencode', 'cursor'] as const;
export type SetupProgram = (typeof SETUP_PROGRAMS)[number];

/** An edit of a file, relative to the project: of the first path that exists, otherwise of the first path. */
export interface PlannedEdit {
  readonly paths: readonly [string, ...string[]];
  readonly edit: FileEdit;
}

const SKILL = `Start servers, workers and tasks with Berth, never with \`&\`, \`nohup\` or a second terminal: it
keeps them alive after your session, waits until they are ready, and keeps their logs.

- \`stack_up\` (or \`berth up\`) brings up what berth.yaml says; \`list\` (\`berth ps\`) shows what runs.
- A command that berth.yaml does not have: \`register\`, then \`start\`.
- \`wait_for\` waits until something is ready or prints a line. Do not sleep in a loop.
- \`explain\` (\`berth status NAME\`) says why something does not run; \`logs\` shows what it printed.
- Do not stop services that you have not started, unless you are asked to.
`;

const DESCRIPTION =
  'Run, wait for, inspect and stop development servers, workers and tasks. Use it whenever something must ' +
  'keep running, or does not start.';

const MARKED = '<!-- berth: written by `berth agent init` -->\n';

/** Identifies a hook's command as Berth's. */
const HOOK_WORDS = 'berth agent hook';
/** Prints nothing and always exits with 0: a hook's output or exit code may change what its program does. */
const hookCommand = (state: string, program: string): string =>
  `${HOOK_WORDS} ${state} --type ${program} >/dev/null 2>&1 || true`;

function isBerthServer(value: unknown): boolean {
  if (!(value instanceof Object)) return false;
  const { command, args }: { command?: unknown; args?: unknown } = value;
  return isDeepStrictEqual([command, args ?? []].flat(), ['berth', 'mcp']);
}

const isBerthHook = (item: unknown): boolean => JSON.stringify(item).includes(HOOK_WORDS);

const server = (file: string, key = 'mcpServers', value: object = { command: 'berth', args: ['mcp'] }) => ({
  paths: [file] as const,
  edit: { kind: 'value', path: [key, 'berth'], value, isOurs: isBerthServer } as const,
});

/** Instructions between two marks, in a file that several programs read. */
const instructions = (file: string): PlannedEdit => ({
  paths: [file],
  edit: { kind: 'block', lines: `## Servers\n\n${SKILL}`, comment: ['<!-- ', ' -->'], toml: null },
});

const own = (file: string, text: string): PlannedEdit => ({ paths: [file], edit: { kind: 'whole', text } });

/** The edits that make a program report its state, in the program's own hook format. */
function hookEdits(
  program: SetupProgram,
  { file, format, events, earlierEvents = [] }: HookFile,
): PlannedEdit[] {
  if (format === 'opencode') return [own(file, opencodePlugin(events))];
  const isFlat = format === 'cursor';
  const hook = (event: string, item: object | null): PlannedEdit => ({
    paths: [file],
    edit: { kind: 'item', path: ['hooks', event], item, isOurs: isBerthHook },
  });
  const items = Object.entries(events).map(([event, state]) => {
    const command = hookCommand(state, program);
    return hook(event, isFlat ? { command } : { hooks: [{ type: 'command', command }] });
  });
  items.push(...earlierEvents.map((event) => hook(event, null)));
  if (!isFlat) return items;
  const version = { kind: 'value', path: ['version'], value: 1, isOurs: () => false } as const;
  return [{ paths: [file], edit: version }, ...items];
}

/**
 * A plugin for opencode, whose hooks cannot run commands. It makes one report at a time: processes that are
 * started at nearly the same time overtake each other.
 */
const opencodePlugin = (events: HookFile['events']): string => `// written by \`berth agent init\`
// It tells Berth what this agent is doing, if Berth has started it.
import { spawn } from 'node:child_process';

const STATES = ${JSON.stringify(events, null, 2)};
const LIMIT_MS = 5_000;

/** Resolves when the report has ended, also if it has failed. */
const report = (args) =>
  new Promise((resolve) => {
    const hook = spawn('berth', ['agent', 'hook', ...args, '--type=opencode'], { stdio: 'ignore' });
    const limit = setTimeout(() => hook.kill('SIGKILL'), LIMIT_MS);
    const end = () => {
      clearTimeout(limit);
      resolve();
    };
    hook.once('exit', end).once('error', end);
  });

/** The latest event that has not been reported. Those before it no longer matter. */
let next = null;
let isReporting = false;

const reportAll = async () => {
  isReporting = true;
  while (next) {
    const args = next;
    next = null;
    await report(args);
  }
  isReporting = false;
};

/** The sessions of subagents. When one ends, the agent goes on. */
const children = new Set();

/** Programs in the shell of this agent inherit it: an opencode among them must not report for the agent. */
process.env.BERTH_OPENCODE_PID ??= String(process.pid);
const isNested = process.env.BERTH_OPENCODE_PID !== String(process.pid);

export const Berth = async () => ({
  event: async ({ event: { type, properties } }) => {
    if (type.startsWith('session.') && properties?.info?.parentID) children.add(properties.info.id);
    const state = STATES[type] ?? STATES[\`\${type}:\${properties?.status?.type}\`];
    if (!state || !process.env.BERTH_AGENT || isNested) return;
    const { sessionID = '' } = properties ?? {};
    const isChild = children.has(sessionID);
    if (isChild && state === 'idle') return;
    next = [state, \`--session=\${isChild ? '' : sessionID}\`];
    if (!isReporting) void reportAll();
  },
});
`;

const codexServer: PlannedEdit = {
  paths: ['.codex/config.toml'],
  edit: {
    kind: 'block',
    lines: '[mcp_servers.berth]\ncommand = "berth"\nargs = ["mcp"]\n',
    comment: ['# ', ''],
    toml: ['mcp_servers', 'berth'],
  },
};

const claudeSkill = `---\nname: berth\ndescription: ${DESCRIPTION}\n---\n\n${MARKED}\n${SKILL}`;
const cursorRule = `---\ndescription: ${DESCRIPTION}\nalwaysApply: true\n---\n\n${MARKED}\n${SKILL}`;

const PLANS: { readonly [P in SetupProgram]: readonly PlannedEdit[] } = {
  claude: [server('.mcp.json'), own('.claude/skills/berth/SKILL.md', claudeSkill)],
  codex: [codexServer, instructions('AGENTS.md')],
  gemini: [server('.gemini/settings.json'), instructions('GEMINI.md')],
  opencode: [
    {
      ...server('opencode.json', 'mcp', { type: 'local', command: ['berth', 'mcp'], enabled: true }),
      paths: ['opencode.json', 'opencode.jsonc'],
    },
    instructions('AGENTS.md'),
  ],
  cursor: [server('.cursor/mcp.json'), own('.cursor/rules/berth.mdc', cursorRule)],
};

/** All edits for a program, in the order in which they are written. */
export const setupPlan = (program: SetupProgram): PlannedEdit[] => [
  ...PLANS[program],
  ...hookEdits(program, CODING_AGENTS[program].hooks),
];

/** The files and folders that a program keeps in a project; one of them shows that it is used there. */
export const SETUP_TRACES: { readonly [P in SetupProgram]: readonly string[] } = {
  claude: ['.claude', '.mcp.json', 'CLAUDE.md'],
  codex: ['.codex'],
  gemini: ['.gemini', 'GEMINI.md'],
  opencode: ['opencode.json', 'opencode.jsonc', '.opencode'],
  cursor: ['.cursor'],
};
