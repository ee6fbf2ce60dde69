// One thread's share of the actors: routing, watches, and the order of a stop.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  ActorReading,
  ActorType,
  Address,
  AskOptions,
  Directory,
  FamilyPrefix,
  FamilyProtocol,
  MessageKind,
  MessageOf,
  Node,
  NodeOptions,
  NodeReading,
  Pipe,
  Ref,
  ReplyOf,
} from './actor.ts';
import { withTimeout } from './deferred.ts';
import type { ConfiguredActor, Sender } from './incarnation.ts';
import { Mailbox, type MailboxNode } from './mailbox.ts';
import { type Envelope, goneFailure, type LinkListener, PeerLink } from './peer_link.ts';
import { openScope } from './scope.ts';

const DEFAULT_DEADLINE_MS = 30_000;
/** Longest wait of a stop for the node's own scope to close. */
const SCOPE_CLOSE_MS = 5_000;

/**
 * The node is its own peer over this pipe: local and remote messages take the same path, encoding included.
 */
function loopbackPipe(): Pipe {
  let deliver = (_: Uint8Array): void => {};
  return {
    // In its own microtask, so that no handler runs inside another one's `tell`.
    send: (bytes) => queueMicrotask(() => deliver(bytes)),
    receive: (onBytes) => {
      deliver = onBytes;
    },
    close: () => {},
  };
}

class NodeRef<P> implements Ref<P> {
  readonly address: string;
  private readonly sender: Sender;
  private readonly node: LocalNode;
  private readonly peer: string | undefined;
  /** Checked at the first ask. */
  private rankChecked = false;

  constructor(address: string, sender: Sender, node: LocalNode) {
    this.address = address;
    this.sender = sender;
    this.node = node;
    this.peer = node.options.nodeOf(address);
  }

  ask<K extends MessageKind<P>>(
    kind: K,
    message: MessageOf<P, K>,
    options?: AskOptions,
  ): Promise<ReplyOf<P, K>> {
    if (!this.rankChecked) this.checkRank(kind);
    const link = this.link();
    if (!link) return Promise.reject(goneFailure(this.address));
    const ms = options?.deadlineMs ?? this.node.options.defaultDeadlineMs ?? DEFAULT_DEADLINE_MS;
    // A reply off the wire has no type: the protocol defines it.
    return link.ask(this.address, kind, message, ms) as Promise<ReplyOf<P, K>>;
  }

  tell<K extends MessageKind<P>>(kind: K, message: MessageOf<P, K>): void {
    this.link()?.tell(this.address, kind, message);
  }

  private link(): PeerLink | undefined {
    return this.sender.live && this.peer !== undefined ? this.node.links.get(this.peer) : undefined;
  }

  private checkRank(kind: string): void {
    const from = this.sender.address;
    const { mayAsk } = this.node.options;
    if (from !== undefined && mayAsk && !mayAsk(from, this.address))
      throw new TypeError(`${from} may not ask ${this.address} (${kind}): asks go down, tells go up`);
    this.rankChecked = true;
  }
}

class LocalNode implements Node, MailboxNode, LinkListener, Sender {
  readonly options: NodeOptions;
  readonly links = new Map<string, PeerLink>();
  readonly address = undefined;
  live = true;
  readonly scope = openScope((error) => this.report(this.name, error, false));
  private readonly mailboxes = new Map<string, Mailbox>();
  private readonly families = new Map<string, ConfiguredActor>();
  /** Addresses and family prefixes in the order of their start. */
  private readonly order: string[] = [];
  private readonly endListeners = new Map<string, Set<(address: string) => void>>();
  private readonly watchers = new Map<string, Set<PeerLink>>();
  private readonly peerLostListeners: ((peer: string, reason: string) => void)[] = [];
  private readonly totals = { messages: 0, missedDeadlines: 0, crashes: 0 };
  private stopped: Promise<string[]> | undefined;

  constructor(options: NodeOptions) {
    this.options = options;
    this.connect(options.name, loopbackPipe());
  }

  get name(): string {
    return this.options.name;
  }

  get clock() {
    return this.options.clock;
  }

  get onHandle() {
    return this.options.onHandle;
  }

  async start<A extends Address, C>(
    address: A,
    type: ActorType<Directory[A], C>,
    config: C,
  ): Promise<Ref<Directory[A]>> {
    if (this.stopped) throw goneFailure(address);
    if (this.mailboxes.has(address)) throw new TypeError(`${address} is started already`);
    this.order.push(address);
    await this.open(
      address,
      configuredActor(type, () => config),
    ).ready;
    return this.ref(address);
  }

  family<F extends FamilyPrefix, C>(
    prefix: F,
    type: ActorType<FamilyProtocol<F>, C>,
    config: (address: string) => C,
  ): void {
    if (familyOf(prefix) !== prefix) throw new TypeError(`${prefix} does not end in its only colon`);
    this.order.push(prefix);
    this.families.set(prefix, configuredActor(type, config));
  }

  ref<A extends Address>(address: A, sender: Sender = this): Ref<Directory[A]> {
    return new NodeRef<Directory[A]>(address, sender, this);
  }

  connect(peer: string, pipe: Pipe): void {
    this.links.get(peer)?.close('replaced by another connection');
    this.links.set(peer, new PeerLink(peer, pipe, this.clock, this));
  }

  disconnect(peer: string): void {
    this.links.get(peer)?.close('disconnected');
  }

  onPeerLost(onLost: (peer: string, reason: string) => void): void {
    this.peerLostListeners.push(onLost);
  }

  read(): NodeReading {
    const byAddress = new Map<string, ActorReading>();
    for (const { address, queue, openReplies } of this.mailboxes.values()) {
      const key = familyOf(address) || address;
      const row = byAddress.get(key) ?? { address: key, actors: 0, waiting: 0, longest: 0, open: 0 };
      byAddress.set(key, row);
      row.actors += 1;
      row.waiting += queue.length;
      row.longest = Math.max(row.longest, queue.length);
      row.open += openReplies;
    }
    const openAsks = [...this.links.values()].reduce((sum, link) => sum + link.openAsks, 0);
    return { actors: [...byAddress.values()], openAsks, ...this.totals };
  }

  async end(address: string): Promise<boolean> {
    return (await this.mailboxes.get(address)?.stop()) ?? true;
  }

  stop(): Promise<string[]> {
    this.stopped ??= this.stopAll();
    return this.stopped;
  }

  private async stopAll(): Promise<string[]> {
    const late: string[] = [];
    for (const entry of this.order.toReversed()) {
      // From here on nothing of this family starts; earlier asks of other actors have been answered.
      this.families.delete(entry);
      const mailboxes = [...this.mailboxes.values()].filter(
        ({ address }) => address === entry || familyOf(address) === entry,
      );
      await Promise.all(
        mailboxes.map(async (mailbox) => {
          if (!(await mailbox.stop())) late.push(mailbox.address);
        }),
      );
    }
    if ((await withTimeout(SCOPE_CLOSE_MS, this.scope.close(), this.clock)) === null) late.push(this.name);
    // The last replies to askers on this node are still passing through the loopback pipe.
    await nextTurn();
    this.live = false;
    for (const link of this.links.values()) link.close('stopped');
    return late;
  }

  watch(address: string, onEnded: (address: string) => void): () => void {
    const list = this.endListeners.get(address) ?? new Set();
    this.endListeners.set(address, list.add(onEnded));
    const link = this.links.get(this.options.nodeOf(address) ?? '');
    if (link) link.watch(address);
    else queueMicrotask(() => this.onEnded(address));
    return () => {
      list.delete(onEnded);
      if (list.size === 0 && this.endListeners.get(address) === list) this.endListeners.delete(address);
    };
  }

  report(address: string, error: unknown, ended: boolean): void {
    this.totals.crashes += 1;
    this.options.onCrash?.(address, error, ended);
  }

  onMailboxClosed(address: string): void {
    this.mailboxes.delete(address);
    const at = this.order.indexOf(address);
    if (at >= 0) this.order.splice(at, 1);
    for (const link of this.watchers.get(address) ?? []) link.ended(address);
    this.watchers.delete(address);
  }

  onMissed(): void {
    this.totals.missedDeadlines += 1;
  }

  onEnvelope(envelope: Envelope): void {
    this.totals.messages += 1;
    const mailbox = this.mailboxes.get(envelope.to) ?? this.activate(envelope.to);
    if (mailbox) mailbox.deliver(envelope);
    else envelope.link.refuse(envelope.id, 'gone', envelope.to);
  }

  onWatch(link: PeerLink, address: string): void {
    if (!this.mailboxes.has(address)) link.ended(address);
    else this.watchers.set(address, (this.watchers.get(address) ?? new Set()).add(link));
  }

  onEnded(address: string): void {
    const list = this.endListeners.get(address);
    this.endListeners.delete(address);
    for (const onEnded of list ?? []) onEnded(address);
  }

  onLost(link: PeerLink, reason: string): void {
    if (this.links.get(link.peer) === link) this.links.delete(link.peer);
    for (const links of this.watchers.values()) links.delete(link);
    if (!this.live) return;
    for (const address of [...this.endListeners.keys()]) {
      if (this.options.nodeOf(address) === link.peer) this.onEnded(address);
    }
    for (const onLost of this.peerLostListeners) onLost(link.peer, reason);
  }

  private open(address: string, type: ConfiguredActor): Mailbox {
    const mailbox = new Mailbox(address, type, this);
    this.mailboxes.set(address, mailbox);
    return mailbox;
  }

  private activate(address: string): Mailbox | undefined {
    const type = this.families.get(familyOf(address));
    if (!type || this.options.nodeOf(address) !== this.name) return undefined;
    return this.open(address, type);
  }
}

const familyOf = (address: string): string => address.slice(0, address.indexOf(':') + 1);

const configuredActor = <P, C>(type: ActorType<P, C>, config: (address: string) => C): ConfiguredActor => ({
  limits: type.limits,
  init: (context) => type.init(context, config(context.address)),
});

/** Creates an empty node. It prints nothing: crashes go to `onCrash`. */
export function createNode(options: NodeOptions): Node {
  return new LocalNode(options);
}
