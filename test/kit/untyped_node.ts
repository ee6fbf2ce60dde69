// Nodes without a directory: tests and benches put any actor at any address.
import type { ActorType, Context, Node, NodeOptions, Ref } from '../../src/runtime/actor.ts';
import { createNode } from '../../src/runtime/node.ts';

export interface UntypedNode extends Omit<Node, 'start' | 'family' | 'ref'> {
  start<P, C>(address: string, type: ActorType<P, C>, config: C): Promise<Ref<P>>;
  family<P, C>(prefix: string, type: ActorType<P, C>, config: (address: string) => C): void;
  ref<P>(address: string): Ref<P>;
}

// The directory exists only for the compiler.
export const untypedNode = (options: NodeOptions): UntypedNode => createNode(options) as UntypedNode;

/** An actor's ref to an address that is in no directory. */
export const untypedRef = <P>({ ref }: Pick<Context, 'ref'>, address: string): Ref<P> =>
  (ref as (address: string) => Ref<unknown>)(address) as Ref<P>;
