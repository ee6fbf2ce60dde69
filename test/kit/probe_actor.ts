// An actor that a test can pause at every step, and that records what happened.
import { type ActorLimits, type ActorType, actor, Failure } from '../../src/runtime/actor.ts';
import { untypedRef } from './untyped_node.ts';

export interface Probe {
  echo(message: { value: unknown }): { value: unknown };
  /** Answers when the test opens `key`. */
  hold(message: { key: string }): { key: string };
  /** The same through `context.later`. */
  later(message: { key: string }): { key: string };
  /** The same through `context.turn`. */
  turn(message: { key: string; hold: string }): { key: string };
  fail(message: { code: string; detail: unknown }): null;
  boom(message: { text: string }): null;
  /** Crashes from outside of any handler, possibly while `hold` is open. */
  crash(message: { text: string }): null;
  end(message: Record<string, never>): null;
  ask(message: { address: string; kind: 'echo' | 'hold' }): null;
  watch(message: { address: string }): null;
}

export interface Steps {
  log: string[];
  /** Opens `key`: whatever waits for it continues, now or when it arrives. */
  open(key: string, error?: Error): void;
  /** The actor type; every incarnation logs `init` and, on closing, `close`. */
  type: ActorType<Probe, null>;
  /** Runs at each `init`, with its number from 1; may throw. */
  onInit: (incarnation: number) => void | Promise<void>;
}

export function probe(limits: Partial<ActorLimits> = {}): Steps {
  const log: string[] = [];
  const gates = new Map<string, PromiseWithResolvers>();
  const gate = (key: string) => {
    const known = gates.get(key) ?? withResolvers();
    gates.set(key, known);
    return known;
  };
  let incarnation = 0;
  const hold = async (key: string) => {
    log.push(`begin ${key}`);
    await gate(key).promise;
    log.push(`end ${key}`);
    return { key };
  };
  const steps: Steps = {
    log,
    open: (key, error) => (error ? gate(key).reject(error) : gate(key).resolve()),
    onInit: () => {},
    type: actor<Probe, null>(
      'probe',
      async (context) => {
        incarnation += 1;
        log.push(`init ${incarnation}`);
        const mine = incarnation;
        context.scope.defer(() => {
          log.push(`close ${mine}`);
        });
        await steps.onInit(incarnation);
        return {
          echo: ({ value }) => {
            log.push(`echo ${JSON.stringify(value)}`);
            return { value };
          },
          hold: ({ key }) => hold(key),
          later: ({ key }) => context.replyLater(hold(key)),
          turn: ({ key, hold: gate }) => context.turn(key, () => hold(gate)),
          fail: ({ code, detail }) => {
            throw new Failure(code, 'as asked', detail);
          },
          boom: ({ text }) => {
            throw new Error(text);
          },
          crash: async ({ text }) => {
            context.clock.after(0, () => context.crash(new Error(text)));
            return null;
          },
          end: () => {
            context.end();
            return null;
          },
          ask: async ({ address, kind }) => {
            const ref = untypedRef<Probe>(context, address);
            await (kind === 'echo' ? ref.ask('echo', { value: 1 }) : ref.ask('hold', { key: address }));
            return null;
          },
          watch: ({ address }) => {
            context.watch(address, (ended) => log.push(`ended ${ended}`));
            return null;
          },
        };
      },
      limits,
    ),
  };
  return steps;
}

interface PromiseWithResolvers {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: Error) => void;
}

function withResolvers(): PromiseWithResolvers {
  let resolve = () => {};
  let reject = (_: Error) => {};
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** The code of the Failure that `promise` rejects with; `none` when it resolves. */
export const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'none',
    (error: unknown) => (error instanceof Failure ? error.code : error),
  );
