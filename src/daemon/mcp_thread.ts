// The contents of the thread that serves the Model Context Protocol.
import { mcpActor } from '../mcp/mcp_actor.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash, reportDefect } from './daemon_log.ts';
import { runThread } from './thread_instance.ts';

async function setupMcp(node: Node): Promise<void> {
  await node.start('mcp', mcpActor, { onDefect: reportDefect });
}

/** The life of the thread: see `runThread`. */
export const runMcpThread = (): Promise<void> => runThread(setupMcp, reportCrash);
