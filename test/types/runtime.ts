// What must not compile. `tsc` checks this file; it is never run.
import type {} from '../../src/protocol/address.ts';
import type { GroupsProtocol } from '../../src/protocol/groups.ts';
import { actor, type Context, type Node, type Ref } from '../../src/runtime/actor.ts';
import { untypedRef } from '../kit/untyped_node.ts';

interface Shop {
  order(message: { item: string; count: number }): { id: number };
  cancel(message: { id: number }): null;
}

export function asks(ref: Ref<Shop>): void {
  const id: Promise<number> = ref.ask('order', { item: 'tea', count: 1 }).then((reply) => reply.id);
  void id;
  // @ts-expect-error the reply of `order` has no `name`
  void ref.ask('order', { item: 'tea', count: 1 }).then((reply) => reply.name);
  // @ts-expect-error a field is missing
  void ref.ask('order', { item: 'tea' });
  // @ts-expect-error a field has the wrong type
  void ref.ask('order', { item: 'tea', count: '1' });
  // @ts-expect-error a field too many
  void ref.ask('cancel', { id: 1, item: 'tea' });
  // @ts-expect-error no such kind
  void ref.ask('refund', { id: 1 });
  // @ts-expect-error a tell has the same messages
  ref.tell('cancel', { id: '1' });
  // @ts-expect-error a tell has no reply
  ref.tell('cancel', { id: 1 }).then(() => {});
  // @ts-expect-error no such option
  void ref.ask('cancel', { id: 1 }, { timeout: 5 });
}

// @ts-expect-error `cancel` has no handler
export const incomplete = actor<Shop, null>('shop', () => ({ order: () => ({ id: 1 }) }));

export const wrongReply = actor<Shop, null>('shop', () => ({
  // @ts-expect-error the reply must have a numeric id
  order: () => ({ id: 'one' }),
  cancel: () => null,
}));

export const wrongMessage = actor<Shop, null>('shop', () => ({
  order: () => ({ id: 1 }),
  // @ts-expect-error `cancel` is given an id, no item
  cancel: ({ item }) => item,
}));

export const wrongLater = actor<Shop, null>('shop', (context) => ({
  // @ts-expect-error the promise must give the reply
  order: () => context.replyLater(Promise.resolve('one')),
  cancel: () => null,
}));

/** Every way to answer. */
export const fine = actor<Shop, { first: number }>('shop', (context: Context, { first }) => {
  const other = untypedRef<Shop>(context, 'other');
  return {
    order: async ({ item }) => (item === 'tea' ? other.ask('order', { item, count: first }) : { id: first }),
    cancel: async ({ id }) => {
      await other.ask('cancel', { id });
      return context.replyLater(other.ask('cancel', { id }));
    },
  };
});

/** Refs and places by the directory of the product. */
export async function directory(node: Node, context: Context): Promise<void> {
  await context.ref('groups').ask('shutdown', {});
  await node.ref('service:web').ask('adopt', {});
  // @ts-expect-error nobody has this address
  node.ref('gruops');
  // @ts-expect-error nor is there such a family
  context.ref('agent:one');
  // @ts-expect-error `registry` does not have the protocol of `groups`
  const wrong: Ref<GroupsProtocol> = node.ref('registry');
  void wrong;
  // @ts-expect-error a protocol is no argument
  node.ref<GroupsProtocol>('groups');
  // @ts-expect-error an actor of another protocol
  await node.start('groups', fine, { first: 1 });
  // @ts-expect-error an address that nobody has
  await node.start('shop', fine, { first: 1 });
  // @ts-expect-error a family of another protocol
  node.family('service:', fine, () => ({ first: 1 }));
  // @ts-expect-error an actor that stands alone is no family
  node.family('groups', fine, () => ({ first: 1 }));
}

// @ts-expect-error the configuration has another type
void fine.init({} as Context, { first: 'one' });
