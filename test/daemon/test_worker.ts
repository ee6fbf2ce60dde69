// The worker thread of these tests: every kind holds the actors that the placement gives it, all of one type.
import { appendFileSync, closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { threadId } from 'node:worker_threads';
import { runThread } from '../../src/daemon/thread_instance.ts';
import { actor, type Context, Failure, type Node } from '../../src/runtime/actor.ts';
import { type UntypedNode, untypedRef } from '../kit/untyped_node.ts';

export interface Worker {
  where(message: null): { node: string; thread: number };
  /** Asks `where` of another actor. */
  ask(message: { address: string }): { node: string; thread: number };
  /** Never answers, and says in the log that it has begun. */
  hang(message: null): null;
  /** Dies by an uncaught exception, outside of any actor. */
  throw(message: { text: string }): null;
  /** Blocks the thread for ever. */
  spin(message: null): null;
  /** Waits in the system until somebody opens the FIFO at `path` for writing. */
  block(message: { path: string }): null;
}

export interface Data {
  /** One line per occurrence: what happened in which thread. */
  log: string;
  /** While this file exists no setup succeeds; with the code of a Failure in it, each fails with that. */
  broken: string;
}

const ADDRESSES = ['registry', 'clusters', 'workloads', 'gateway'];

function worker(node: Node, { log }: Data) {
  const handlers = (context: Context) => {
    context.scope.defer(() => appendFileSync(log, `closed ${context.address}\n`));
    const where = () => ({ node: node.name, thread: threadId });
    return {
      where,
      ask: ({ address }: { address: string }) => untypedRef<Worker>(context, address).ask('where', null),
      hang: () => {
        appendFileSync(log, 'hanging\n');
        return new Promise<null>(() => {});
      },
      throw: ({ text }: { text: string }) => {
        setImmediate(() => {
          throw new Error(text);
        });
        return new Promise<null>(() => {});
      },
      spin: () => {
        appendFileSync(log, 'spinning\n');
        for (;;);
      },
      block: ({ path }: { path: string }) => {
        appendFileSync(log, 'blocking\n');
        closeSync(openSync(path, 'r'));
        return null;
      },
    };
  };
  return actor<Worker, null>('worker', handlers, { drainMs: 100 });
}

await runThread(
  async (node, data) => {
    const given = data as Data;
    if (existsSync(given.broken)) {
      const code = readFileSync(given.broken, 'utf8');
      throw code.startsWith('storage_') ? new Failure(code, 'refused') : new Error('broken setup');
    }
    const type = worker(node, given);
    // Its actors take the addresses of the product's.
    const untyped: UntypedNode = node as UntypedNode;
    for (const family of ['service:', 'tether:']) untyped.family(family, type, () => null);
    for (const address of ADDRESSES) await untyped.start(address, type, null);
    appendFileSync(given.log, `up ${node.name}\n`);
  },
  () => {},
);
