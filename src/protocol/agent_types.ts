// The table of agent types: docs/reference.md "Agent types". A new type is a row here, in the README and in
// the reference.

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
}

const AGENT_KINDS = {
  langgraph: {
    program: 'langgraph',
    cmd: 'langgraph dev --host 127.0.0.1 --port $PORT --no-browser',
    readyPath: '/ok',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install "langgraph-cli[inmem]"',
    hostHeader: null,
  },
  crewai: {
    program: 'crewai',
    cmd: 'CREWAI_DMN=1 crewai run',
    readyPath: null,
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install crewai',
    hostHeader: null,
  },
  autogen: {
    program: 'autogenstudio',
    cmd: 'autogenstudio ui --host 127.0.0.1 --port $PORT',
    readyPath: '/api/health',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install autogenstudio',
    hostHeader: null,
  },
  vllm: {
    program: 'vllm',
    cmd: 'vllm serve "$VLLM_MODEL" --host 127.0.0.1 --port $PORT',
    readyPath: '/health',
    stopSignal: 'SIGTERM',
    requiredVariable: 'VLLM_MODEL',
    install: 'pip install vllm',
    hostHeader: null,
  },
  ollama: {
    program: 'ollama',
    cmd: 'OLLAMA_HOST=127.0.0.1:$PORT ollama serve',
    readyPath: '/api/version',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'curl -fsSL https://ollama.com/install.sh | sh',
    hostHeader: '127.0.0.1:$PORT',
  },
  ray: {
    program: 'serve',
    cmd: 'RAY_SERVE_DEFAULT_HTTP_HOST=127.0.0.1 RAY_SERVE_DEFAULT_HTTP_PORT=$PORT serve run "$RAY_APP"',
    readyPath: '/-/healthz',
    stopSignal: 'SIGINT',
    requiredVariable: 'RAY_APP',
    install: 'pip install "ray[serve]"',
    hostHeader: null,
  },
} as const satisfies Readonly<Record<string, AgentKind>>;

export type AgentType = keyof typeof AGENT_KINDS;

/** In the order of the table. TypeScript types the keys of an object as plain strings. */
export const AGENT_TYPES = Object.keys(AGENT_KINDS) as AgentType[];

/** The requirements of an agent of `type`. */
export const agentKind = (type: AgentType): AgentKind => AGENT_KINDS[type];
