// The one table of agent types: docs/reference.md "Agent types". A new type is a row here, in README and in
// the reference.

interface AgentKind {
  /** Looked up in PATH before the start. */
  readonly program: string;
  /** For the shell; its environment has PORT. */
  readonly cmd: string;
  /** Path of the ready URL; null: the agent is ready when it has been up for a moment. */
  readonly readyPath: string | null;
  readonly stopSignal: string;
  /** A variable that must be in `env`. */
  readonly requiredVariable: string | null;
  /** The command that installs the program. */
  readonly install: string;
  /**
   * What the gateway sends as `Host`, where `$PORT` is the port of the agent; null: what the client has sent.
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

/** In the order of the table. The compiler does not know the keys of an object to be all that it has. */
export const AGENT_TYPES = Object.keys(AGENT_KINDS) as AgentType[];

/** What an agent of `type` needs to run. */
export const agentKind = (type: AgentType): AgentKind => AGENT_KINDS[type];
