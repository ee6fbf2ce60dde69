import { createHash } from 'node:crypto';
import { actor, type Context, Failure, type Ref } from '../../src/runtime/actor.ts';
import { pipePair, stopInTime, type TestClock, virtualClock } from '../kit/actors.ts';
import { random } from '../kit/random.ts';
import { type UntypedNode, untypedNode, untypedRef } from '../kit/untyped_node.ts';

export type Outcomes = Map<string, number>;

const NODES = 4;
const KINDS = 6;
const MEMBERS = 3;
const STEPS = 150;
const LONGEST_FRAME_MS = 40;
const LONGEST_WORK_MS = 60;

type Deed = 'reply' | 'wait' | 'later' | 'fail' | 'crash' | 'crash while waiting' | 'end' | 'ask' | 'tell';
const DEEDS: readonly Deed[] = [
  'reply',
  'reply',
  'wait',
  'wait',
  'later',
  'later',
  'fail',
  'crash',
  'crash while waiting',
  'end',
  'ask',
  'ask',
  'tell',
];

interface Order {
  id: number;
  /** The sender, and the number of this message among its messages to this receiver. */
  from: string;
  sequence: number;
  deed: Deed;
  ms: number;
  /** For `ask` and `tell`: the order to pass on. */
  onward: { to: string; order: Order; deadlineMs: number } | null;
  /** The latest time at which it may begin; a tell has none. */
  beginBy: number | null;
}

interface Worker {
  work(message: Order): { id: number };
}

const rankOf = (address: string): number => Number(address.slice(1).split(':')[0]);

/** One run. Everything that happens goes to `log`; a broken invariant is kept until the end of the run. */
class Simulation {
  readonly clock: TestClock = virtualClock();
  readonly outcomes: Outcomes = new Map();
  readonly log: string[] = [];
  readonly nodes: UntypedNode[];
  private readonly dice: (below: number) => number;
  private readonly broken: string[] = [];
  private readonly handling = new Map<string, number>();
  private readonly begun = new Set<number>();
  private readonly finished = new Set<number>();
  private readonly lastSent = new Map<string, number>();
  private readonly lastSeen = new Map<string, number>();
  private readonly scopes = new Set<string>();
  private readonly cuts = new Map<string, () => void>();
  private lastId = 0;
  private openAsks = 0;

  constructor(seed: number) {
    this.dice = random(seed);
    const place = (address: string) => `n${rankOf(address) % NODES}`;
    this.nodes = Array.from({ length: NODES }, (_, index) =>
      untypedNode({
        name: `n${index}`,
        clock: this.clock,
        nodeOf: place,
        mayAsk: (from, to) => rankOf(from) < rankOf(to),
        defaultDeadlineMs: 2000,
        onCrash: (address, error, ended) => this.note(`crash ${address} ${error} ${ended}`),
      }),
    );
  }

  async run(): Promise<void> {
    const type = actor<Worker, null>('worker', (context) => this.worker(context), {
      mailbox: 4,
      restarts: { max: 3, withinMs: 500 },
      drainMs: 2000,
    });
    for (let rank = 0; rank < KINDS; rank += 1) {
      this.nodeOf(`s${rank}`).family(`f${rank}:`, type, () => null);
      void this.nodeOf(`s${rank}`).start(`s${rank}`, type, null);
    }
    for (let a = 0; a < NODES; a += 1) for (let b = a + 1; b < NODES; b += 1) this.join(a, b);
    for (let step = 0; step < STEPS; step += 1) {
      for (let count = this.dice(8); count > 0; count -= 1) this.client();
      if (this.dice(12) === 0) this.cut();
      await this.clock.advance(this.dice(25));
    }
    const late = await Promise.all(this.nodes.map((node) => stopInTime(node, this.clock)));
    this.must(late.flat().length === 0, `late: ${late.flat()}`);
    this.must(this.openAsks === 0, `${this.openAsks} asks never settled`);
    this.must(this.scopes.size === 0, `never closed: ${[...this.scopes]}`);
    for (const [address, count] of this.handling) this.must(count === 0, `${address} still handles ${count}`);
  }

  check(seed: number): void {
    if (this.broken.length === 0) return;
    throw new Error(
      `seed ${seed}: ${this.broken[0]} (${this.broken.length} in all)\n${this.log.slice(-40).join('\n')}`,
    );
  }

  private note(line: string): void {
    this.log.push(`${this.clock.monotonic()} ${line}`);
  }

  private must(holds: boolean, otherwise: string): void {
    if (holds) return;
    this.note(`BROKEN ${otherwise}`);
    this.broken.push(otherwise);
  }

  private count(outcome: string): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  private nodeOf(address: string): UntypedNode {
    const node = this.nodes[rankOf(address) % NODES];
    if (!node) throw new Error(address);
    return node;
  }

  private join(a: number, b: number): void {
    const [near, far] = [this.nodes[a], this.nodes[b]];
    if (!near || !far) return;
    // Late, but in sending order, as in any pipe.
    const arrival = [0, 0];
    const { ends, cut } = pipePair((deliver, from) => {
      const at = Math.max(arrival[from] ?? 0, this.clock.monotonic() + this.dice(LONGEST_FRAME_MS));
      arrival[from] = at;
      this.clock.after(at - this.clock.monotonic(), deliver);
    });
    near.connect(far.name, ends[0]);
    far.connect(near.name, ends[1]);
    this.cuts.set(`${a} ${b}`, () => cut('cut'));
  }

  private cut(): void {
    const a = this.dice(NODES - 1);
    const b = a + 1 + this.dice(NODES - 1 - a);
    this.note(`cut ${a} ${b}`);
    if (this.dice(2) === 0) this.cuts.get(`${a} ${b}`)?.();
    // Reconnects: after the cut, or in place of a pipe that still works.
    this.clock.after(this.dice(100), () => {
      this.note(`join ${a} ${b}`);
      this.join(a, b);
    });
  }

  /** A message from outside all actors. */
  private client(): void {
    const node = this.nodes[this.dice(NODES)];
    if (!node) return;
    const to = this.address(0);
    this.send(
      node.ref<Worker>(to),
      `client ${node.name}`,
      this.order(`client ${node.name}`, to, 0),
      this.dice(5) > 0,
    );
  }

  private address(above: number): string {
    const rank = above + this.dice(KINDS - above);
    return this.dice(2) === 0 ? `s${rank}` : `f${rank}:${this.dice(MEMBERS)}`;
  }

  private order(from: string, to: string, depth: number): Order {
    this.lastId += 1;
    const deed = DEEDS[this.dice(DEEDS.length)] ?? 'reply';
    const order: Order = {
      id: this.lastId,
      from,
      sequence: 0,
      deed,
      ms: this.dice(LONGEST_WORK_MS),
      onward: null,
      beginBy: null,
    };
    if ((deed === 'ask' && rankOf(to) < KINDS - 1) || deed === 'tell') {
      const next = this.address(deed === 'ask' ? rankOf(to) + 1 : 0);
      if (depth < 4)
        order.onward = { to: next, order: this.order(to, next, depth + 1), deadlineMs: 1 + this.dice(200) };
    }
    return order;
  }

  /** Sends `order`; the promise never rejects. */
  private async send(
    ref: Ref<Worker>,
    from: string,
    order: Order,
    ask: boolean,
    deadlineMs = 1 + this.dice(300),
  ): Promise<void> {
    const pair = `${from} > ${ref.address}`;
    const sequence = (this.lastSent.get(pair) ?? 0) + 1;
    this.lastSent.set(pair, sequence);
    const message = {
      ...order,
      from: pair,
      sequence,
      beginBy: ask ? this.clock.monotonic() + deadlineMs + LONGEST_FRAME_MS : null,
    };
    this.note(`${ask ? 'ask' : 'tell'} ${pair} ${order.id} ${order.deed}`);
    if (!ask) {
      ref.tell('work', message);
      return;
    }
    this.openAsks += 1;
    let outcome = 'none';
    try {
      const reply = await ref.ask('work', message, { deadlineMs });
      this.must(reply.id === order.id, `reply ${reply.id} for ${order.id}`);
      this.must(this.finished.has(order.id), `${order.id} was answered and never done`);
    } catch (error) {
      outcome = error instanceof Failure ? error.code : String(error);
      if (outcome === 'overloaded') this.must(!this.begun.has(order.id), `${order.id} was refused and run`);
    }
    this.openAsks -= 1;
    this.count(outcome);
    this.note(`settled ${order.id} ${outcome}`);
  }

  private worker(context: Context) {
    const { address } = context;
    this.count('restarted');
    this.note(`init ${address}`);
    const watched = this.address(0);
    let notified = 0;
    context.watch(watched, () => {
      notified += 1;
      this.count('notified');
      this.must(notified === 1, `${address} was notified twice of ${watched}`);
    });
    this.must(!this.scopes.has(address), `${address} began before its last incarnation was closed`);
    this.scopes.add(address);
    context.scope.defer(() => {
      this.scopes.delete(address);
    });
    // An occasional crash in `init` itself.
    if (this.dice(25) === 0) throw new Error('init');
    return {
      work: (order: Order) => {
        this.begin(address, order);
        if (order.deed !== 'later') return this.handle(context, order);
        return context.replyLater(this.handle(context, { ...order, deed: 'wait' }, false));
      },
    };
  }

  private begin(address: string, order: Order): void {
    const now = this.clock.monotonic();
    this.note(`begin ${address} ${order.id}`);
    this.must(!this.begun.has(order.id), `${order.id} was run twice`);
    this.begun.add(order.id);
    this.must(
      (this.handling.get(address) ?? 0) === 0,
      `${address} began ${order.id} while another one was open`,
    );
    this.must(order.beginBy === null || now <= order.beginBy, `${order.id} was run after its deadline`);
    const last = this.lastSeen.get(order.from) ?? 0;
    this.must(order.sequence > last, `${order.from}: ${order.sequence} came after ${last}`);
    this.lastSeen.set(order.from, order.sequence);
  }

  private async handle(context: Context, order: Order, alone = true): Promise<{ id: number }> {
    const { address } = context;
    if (alone) this.handling.set(address, (this.handling.get(address) ?? 0) + 1);
    try {
      await this.perform(context, order);
      this.finished.add(order.id);
      return { id: order.id };
    } finally {
      if (alone) this.handling.set(address, (this.handling.get(address) ?? 0) - 1);
    }
  }

  private async perform(context: Context, { deed, ms, onward }: Order): Promise<void> {
    const pause = () => new Promise<void>((resolve) => this.clock.after(ms, resolve));
    if (deed === 'fail') throw new Failure('failed', 'as ordered');
    if (deed === 'crash') throw new Error('as ordered');
    if (deed === 'end') context.end();
    if (deed === 'crash while waiting')
      context.clock.after(ms / 2, () => context.crash(new Error('from outside')));
    if (deed === 'wait' || deed === 'end' || deed === 'crash while waiting') await pause();
    if (!onward) return;
    await this.send(
      untypedRef<Worker>(context, onward.to),
      context.address,
      onward.order,
      deed === 'ask',
      onward.deadlineMs,
    );
  }
}

/** Runs the simulation of `seed`. Throws, naming the seed, when an invariant broke. */
export async function simulate(seed: number): Promise<{ trace: string; outcomes: Outcomes }> {
  const simulation = new Simulation(seed);
  await simulation.run();
  simulation.check(seed);
  return {
    trace: createHash('sha256').update(simulation.log.join('\n')).digest('hex'),
    outcomes: simulation.outcomes,
  };
}
