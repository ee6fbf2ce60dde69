// What each type of agent needs to run: the one table, docs/reference.md "Agent types".
import type { AgentType } from '../../protocol/service.ts';

export interface AgentKind {
  /** Looked up in PATH first. */
  program: string;
  /** For the shell; its environment has PORT. */
  cmd: string;
  /** Path of its ready URL; null: it has none, and is ready when it has been up for a moment. */
  ready: string | null;
  stopSignal: string;
  /** A variable that must be in `env`. */
  needs: string | null;
  install: string;
}

export const AGENT_KINDS: Readonly<Record<AgentType, AgentKind>> = {
  langgraph: {
    program: 'langgraph',
    cmd: 'langgraph dev --host 127.0.0.1 --port $PORT --no-browser',
    ready: '/ok',
    stopSignal: 'SIGTERM',
    needs: null,
    install: 'pip install "langgraph-cli[inmem]"',
  },
  crewai: {
    program: 'crewai',
    cmd: 'CREWAI_DMN=1 crewai run',
    ready: null,
    stopSignal: 'SIGTERM',
    needs: null,
    install: 'pip install crewai',
  },
  autogen: {
    program: 'autogenstudio',
    cmd: 'autogenstudio ui --host 127.0.0.1 --port $PORT',
    ready: '/api/health',
    stopSignal: 'SIGTERM',
    needs: null,
    install: 'pip install autogenstudio',
  },
  vllm: {
    program: 'vllm',
    cmd: 'vllm serve "$VLLM_MODEL" --host 127.0.0.1 --port $PORT',
    ready: '/health',
    stopSignal: 'SIGTERM',
    needs: 'VLLM_MODEL',
    install: 'pip install vllm',
  },
  ollama: {
    program: 'ollama',
    cmd: 'OLLAMA_HOST=127.0.0.1:$PORT ollama serve',
    ready: '/api/version',
    stopSignal: 'SIGTERM',
    needs: null,
    install: 'curl -fsSL https://ollama.com/install.sh | sh',
  },
  ray: {
    program: 'serve',
    cmd: 'RAY_SERVE_DEFAULT_HTTP_HOST=127.0.0.1 RAY_SERVE_DEFAULT_HTTP_PORT=$PORT serve run "$RAY_APP"',
    ready: '/-/healthz',
    stopSignal: 'SIGINT',
    needs: 'RAY_APP',
    install: 'pip install "ray[serve]"',
  },
};
