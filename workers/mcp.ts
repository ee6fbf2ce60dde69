import { runMcpThread } from '../src/daemon/mcp_thread.ts';

void runMcpThread();
