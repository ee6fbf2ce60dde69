// The table of agent types: docs/reference.md "Agent types". A new type gets a row here, in the README and in
// the reference; a coding agent also gets one in coding_agents.ts.
import { CODING_AGENTS, type CodingAgent } from './coding_agents.ts';

interface AgentKind {
  /** The program that must be in PATH before it is started. */
  readonly program: string;
  /** The shell command. Its environment contains PORT. */
  readonly cmd: string;
  /** Path of the ready URL; null: the agent counts as ready after the minimum uptime. */
  readonly readyPath: string | null;
  readonly stopSignal: string;
  /** A variable that `env` must contain; null if none. */
  readonly requiredVariable: string | null;
  /** The command that installs the program. */
  readonly install: string;
  /**
   * The `Host` header that the gateway sends, where `$PORT` stands for the agent's port; null: the client's
   * own header.
   */
  readonly hostHeader: string | null;
  /** How a person uses it in its terminal; null: it is a server and takes no prompts. */
  readonly coding: CodingAgent | null;
}

const SERVER_KINDS = {
  langgraph: {
    program: 'langgraph',
    cmd: 'langgraph dev --host 127.0.0.1 --port $PORT --no-browser',
    readyPath: '/ok',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install "langgraph-cli[inmem]"',
    hostHeader: null,
    coding: null,
  },
  crewai: {
    program: 'crewai',
    cmd: 'CREWAI_DMN=1 crewai run',
    readyPath: null,
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install crewai',
    hostHeader: null,
    coding: null,
  },
  autogen: {
    program: 'autogenstudio',
    cmd: 'autogenstudio ui --host 127.0.0.1 --port $PORT',
    readyPath: '/api/health',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install autogenstudio',
    hostHeader: null,
    coding: null,
  },
  vllm: {
    program: 'vllm',
    cmd: 'vllm serve "$VLLM_MODEL" --host 127.0.0.1 --port $PORT',
    readyPath: '/health',
    stopSignal: 'SIGTERM',
    requiredVariable: 'VLLM_MODEL',
    install: 'pip install vllm',
    hostHeader: null,
    coding: null,
  },
  ollama: {
    program: 'ollama',
    cmd: 'OLLAMA_HOST=127.0.0.1:$PORT ollama serve',
    readyPath: '/api/version',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'curl -fsSL https://ollama.com/install.sh | sh',
    hostHeader: '127.0.0.1:$PORT',
    coding: null,
  },
  ray: {
    program: 'serve',
    cmd: 'RAY_SERVE_DEFAULT_HTTP_HOST=127.0.0.1 RAY_SERVE_DEFAULT_HTTP_PORT=$PORT serve run "$RAY_APP"',
    readyPath: '/-/healthz',
    stopSignal: 'SIGINT',
    requiredVariable: 'RAY_APP',
    install: 'pip install "ray[serve]"',
    hostHeader: null,
    coding: null,
  },
} as const satisfies Readonly<Record<string, AgentKind>>;

type ServerType = keyof typeof SERVER_KINDS;
type CodingType = keyof typeof CODING_AGENTS;
export type AgentType = ServerType | CodingType;

const codingKind = (coding: CodingAgent): AgentKind => ({
  program: coding.program,
  cmd: coding.cmd,
  readyPath: null,
  stopSignal: 'SIGTERM',
  requiredVariable: null,
  install: coding.install,
  hostHeader: null,
  coding,
});

const KINDS: ReadonlyMap<string, AgentKind> = new Map<string, AgentKind>([
  ...Object.entries(SERVER_KINDS),
  ...Object.entries(CODING_AGENTS).map(([type, coding]): [string, AgentKind] => [type, codingKind(coding)]),
]);

/** In the order of the tables. */
export const AGENT_TYPES = [...KINDS.keys()] as AgentType[];

/** The table row of agent type `type`. Throws a TypeError for an unknown type. */
export function agentKind(type: AgentType): AgentKind {
  const kind = KINDS.get(type);
  if (!kind) throw new TypeError(`there is no agent type ${type}`);
  return kind;
}

/** How an agent of `type` is used in its terminal; null: not a coding agent, or a type of a newer version. */
export const codingAgent = (type: AgentType | null): CodingAgent | null =>
  (type === null ? null : KINDS.get(type)?.coding) ?? null;

/**
 * Whether a hook of a program of type `reporter` speaks for an agent of `type`, rather than for a program
 * that the agent runs. null: no type is given. A shell, or an agent without a type, may be any program.
 */
export const speaksFor = (type: AgentType | null, reporter: string | null): boolean =>
  reporter === null || reporter === type || type === 'shell' || codingAgent(type) === null;
