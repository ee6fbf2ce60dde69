// The stack of a hanging thread. V8's inspector interrupts whatever JavaScript is running, even endless loops
// and regular expressions. A thread inside a system call does not answer.
import type { Session } from 'node:inspector';

/** Time for the stack of a thread. */
const STACK_MS = 2_000;
/** How many innermost frames to show. */
const MAX_FRAMES = 12;

interface Frame {
  functionName: string;
  location: { scriptId: string; lineNumber: number };
}

/** A message of the inspector about the thread. Its parameters are those of the DevTools protocol. */
interface InspectorEvent {
  method?: string;
  params?: unknown;
}

/**
 * Pauses the thread to which `send` sends commands, and returns its stack, innermost frame first; empty
 * without an answer. `listen` is called once, with the listener for the thread's events.
 */
async function pausedStack(
  send: (method: string) => void,
  listen: (onEvent: (event: InspectorEvent) => void) => void,
): Promise<string[]> {
  const urls = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  const frames = await new Promise<Frame[]>((resolve) => {
    timer = setTimeout(() => resolve([]), STACK_MS);
    listen(({ method, params }) => {
      if (method === 'Debugger.scriptParsed') {
        const { scriptId, url } = params as { scriptId: string; url: string };
        urls.set(scriptId, url);
      } else if (method === 'Debugger.paused') resolve((params as { callFrames: Frame[] }).callFrames);
    });
    send('Debugger.enable');
    send('Debugger.pause');
  });
  clearTimeout(timer);
  // A thread left paused could not be ended.
  send('Debugger.disable');
  return frames.slice(0, MAX_FRAMES).map(({ functionName, location }) => {
    const file = urls.get(location.scriptId)?.replace(/^file:\/\//, '') ?? 'native code';
    return `${functionName || 'anonymous'} (${file}:${location.lineNumber + 1})`;
  });
}

/** A diagnosis without a stack is better than none, so anything the inspector refuses counts as no answer. */
async function withSession(use: (session: Session) => Promise<string[]>): Promise<string[]> {
  const { Session } = await import('node:inspector');
  const session = new Session();
  try {
    return await use(session);
  } catch {
    return [];
  } finally {
    session.disconnect();
  }
}

/** The stack of the worker thread `name`, seen from the main thread; empty if it does not answer. */
export function workerStack(name: string): Promise<string[]> {
  return withSession(async (session) => {
    session.connect();
    const sessionId = await new Promise<string | null>((resolve) => {
      session.on('NodeWorker.attachedToWorker', ({ params }) => {
        if (params.workerInfo.title.endsWith(` ${name}`)) resolve(params.sessionId);
      });
      session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, () =>
        setTimeout(resolve, STACK_MS, null),
      );
    });
    if (sessionId === null) return [];
    let lastId = 0;
    const send = (method: string): void => {
      lastId += 1;
      session.post('NodeWorker.sendMessageToWorker', {
        sessionId,
        message: JSON.stringify({ id: lastId, method }),
      });
    };
    return pausedStack(send, (onEvent) =>
      session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
        if (params.sessionId === sessionId) onEvent(JSON.parse(params.message));
      }),
    );
  });
}

/** The stack of the main thread, seen from a worker thread; empty if it does not answer. */
export function mainThreadStack(): Promise<string[]> {
  return withSession((session) => {
    session.connectToMainThread();
    return pausedStack(
      (method) => session.post(method),
      (onEvent) => session.on('inspectorNotification', onEvent),
    );
  });
}
