// The table of agent types: docs/reference.md "Agent types". A new type is a row here, in the README and in
// the reference; a coding agent is a row of coding_agents.ts too.
import { CODING_AGENTS, type CodingAgent } from './coding_agents.ts';

interface AgentKind {
  /** The program that must be in PATH before the start. */
  readonly program: string;
  /** The shell command; its environment has PORT. */
  readonly cmd: string;
  /** Path of the ready URL; null: the agent is ready after the minimum uptime. */
  readonly readyPath: string | null;
  readonly stopSignal: string;
  /** A variable that must be in `env`. */
  readonly requiredVariable: string | null;
  /** The command that installs the program. */
  readonly install: string;
  /**
   * The `Host` header that the gateway sends, with `$PORT` for the port of the agent; null: the client's own.
   */
  readonly hostHeader: string | null;
  /** How a person works with it in its terminal; null: it is a server, which takes no prompts. */
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

/** In the order of the tables. TypeScript types the keys of an object as plain strings. */
export const AGENT_TYPES = [...KINDS.keys()] as AgentType[];

/** The requirements of an agent of `type`. Throws a TypeError for an unknown one. */
export function agentKind(type: AgentType): AgentKind {
  const kind = KINDS.get(type);
  if (!kind) throw new TypeError(`there is no agent type ${type}`);
  return kind;
}

/** How an agent of `type` is worked with; null: it is no coding agent, or of a type of a newer version. */
export const codingAgent = (type: AgentType | null): CodingAgent | null =>
  (type === null ? null : KINDS.get(type)?.coding) ?? null;
