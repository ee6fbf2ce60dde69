// What each type of agent needs to run: the one table, docs/reference.md "Agent types".
import type { AgentType } from '../../protocol/service.ts';

export interface AgentKind {
  /** Looked up in PATH first. */
  program: string;
  /** For the shell; its environment has PORT. */
  cmd: string;
  /** Path of its ready URL; null: it has none, and is ready when it has been up for a moment. */
  readyPath: string | null;
  stopSignal: string;
  /** A variable that must be in `env`. */
  requiredVariable: string | null;
  install: string;
}

export const AGENT_KINDS: Readonly<Record<AgentType, AgentKind>> = {
  langgraph: {
    program: 'langgraph',
    cmd: 'langgraph dev --host 127.0.0.1 --port $PORT --no-browser',
    readyPath: '/ok',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install "langgraph-cli[inmem]"',
  },
  crewai: {
    program: 'crewai',
    cmd: 'CREWAI_DMN=1 crewai run',
    readyPath: null,
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install crewai',
  },
  autogen: {
    program: 'autogenstudio',
    cmd: 'autogenstudio ui --host 127.0.0.1 --port $PORT',
    readyPath: '/api/health',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'pip install autogenstudio',
  },
  vllm: {
    program: 'vllm',
    cmd: 'vllm serve "$VLLM_MODEL" --host 127.0.0.1 --port $PORT',
    readyPath: '/health',
    stopSignal: 'SIGTERM',
    requiredVariable: 'VLLM_MODEL',
    install: 'pip install vllm',
  },
  ollama: {
    program: 'ollama',
    cmd: 'OLLAMA_HOST=127.0.0.1:$PORT ollama serve',
    readyPath: '/api/version',
    stopSignal: 'SIGTERM',
    requiredVariable: null,
    install: 'curl -fsSL https://ollama.com/install.sh | sh',
  },
  ray: {
    program: 'serve',
    cmd: 'RAY_SERVE_DEFAULT_HTTP_HOST=127.0.0.1 RAY_SERVE_DEFAULT_HTTP_PORT=$PORT serve run "$RAY_APP"',
    readyPath: '/-/healthz',
    stopSignal: 'SIGINT',
    requiredVariable: 'RAY_APP',
    install: 'pip install "ray[serve]"',
  },
};
