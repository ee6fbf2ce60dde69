// Runs the effects that the state requests: calls to the daemon, and the stream of the shown log.
import type { Client } from '../../client/create_client.ts';
import type { LifecycleEvent } from '../../presentation/event_text.ts';
import { actionTitle } from './action_steps.ts';
import { followShownLog } from './follow_log.ts';
import type { Action, Effect, LogPageRead, Message, Target } from './model.ts';
import { readLogPage } from './read_log.ts';
import { troubleText } from './trouble.ts';

type Calls = Partial<Record<Action, (client: Client, name: string) => Promise<unknown>>>;

/** The call for each action of each kind of target. */
const CALLS: Readonly<Record<Target['kind'], Calls>> = {
  service: {
    start: (client, name) => client.start(name),
    stop: (client, name) => client.stop(name),
    restart: (client, name) => client.restart(name),
    sleep: (client, name) => client.sleep(name),
    wake: (client, name) => client.wake(name),
    remove: (client, name) => client.remove(name),
  },
  agent: {
    start: (client, name) => client.start(name),
    stop: (client, name) => client.stop(name),
    restart: (client, name) => client.restart(name),
    sleep: (client, name) => client.sleepAgent(name),
    wake: (client, name) => client.wakeAgent(name),
    remove: (client, name) => client.removeAgent(name),
  },
  group: {
    start: (client, name) => client.startGroup(name),
    stop: (client, name) => client.stopGroup(name),
    restart: (client, name) => client.restartGroup(name),
    sleep: (client, name) => client.sleepGroup(name),
    wake: (client, name) => client.wakeGroup(name),
  },
  workload: {
    start: ({ cloud }, id) => cloud.wake(id),
    stop: ({ cloud }, id) => cloud.sleep(id),
    sleep: ({ cloud }, id) => cloud.sleep(id),
    wake: ({ cloud }, id) => cloud.wake(id),
  },
};

const DETAIL_EVENTS = 20;

/** The effects that need only the daemon. */
export type DaemonEffect = Exclude<
  Effect,
  { kind: 'quit' | 'suspend' | 'redraw' | 'attach' | 'copy' | 'openUrl' }
>;

/** Runs the effects that need the daemon, and reports their outcomes as messages. */
export class DaemonEffects {
  private readonly clientNow: () => Client | null;
  private readonly tell: (message: Message) => void;
  private readonly signal: AbortSignal;
  private log = new AbortController();
  private pages = new AbortController();

  constructor(clientNow: () => Client | null, tell: (message: Message) => void, signal: AbortSignal) {
    this.clientNow = clientNow;
    this.tell = tell;
    this.signal = signal;
    signal.addEventListener('abort', () => this.closeLog());
  }

  run(effect: DaemonEffect): void {
    switch (effect.kind) {
      case 'act':
        void this.act(effect.action, effect.target);
        break;
      case 'prompt':
        void this.prompt(effect.name, effect.text);
        break;
      case 'readDetails':
        void this.readDetails(effect.name);
        break;
      case 'readPolicies':
        void this.readPolicies();
        break;
      case 'openLog':
        this.closeLog();
        this.log = new AbortController();
        this.pages = new AbortController();
        void followShownLog(this.clientNow, effect, this.tell, this.log.signal);
        break;
      case 'readLog':
        void this.readLog(effect);
        break;
      case 'detachLog':
        this.log.abort();
        break;
      case 'closeLog':
        this.closeLog();
        break;
    }
  }

  private closeLog(): void {
    this.log.abort();
    this.pages.abort();
  }

  private async readLog({ selection, reading }: Extract<Effect, { kind: 'readLog' }>): Promise<void> {
    const { signal } = this.pages;
    const client = this.clientNow();
    const page: LogPageRead = client
      ? await readLogPage({ client, selection, signal }, reading)
      : { kind: 'nothing', reason: 'The daemon is not found yet.' };
    if (!signal.aborted) this.tell({ kind: 'logRead', selection, reading: reading.kind, page });
  }

  private async perform(
    title: string,
    work: (client: Client) => Promise<unknown> | undefined,
  ): Promise<boolean> {
    const client = this.clientNow();
    if (!client) return false;
    this.tell({ kind: 'began', title });
    let error: string | null = null;
    try {
      await work(client);
    } catch (thrown) {
      error = troubleText(thrown);
    }
    if (!this.signal.aborted) this.tell({ kind: 'ended', title, error });
    return error === null;
  }

  private act(action: Action, target: Target): Promise<boolean> {
    return this.perform(actionTitle(action, target), (client) =>
      CALLS[target.kind][action]?.(client, target.name),
    );
  }

  private async prompt(name: string, text: string): Promise<void> {
    const isSent = await this.perform(`prompt ${name}`, (client) =>
      client.promptAgent(name, { text, wait: false, queue: true }),
    );
    if (isSent) this.tell({ kind: 'said', tone: 'good', text: `${name} has the prompt.` });
  }

  private async readPolicies(): Promise<void> {
    const client = this.clientNow();
    if (!client) return;
    const { signal } = this;
    try {
      this.tell({ kind: 'policies', policies: await client.cloud.policies({ signal }) });
    } catch (error) {
      if (!signal.aborted) this.tell({ kind: 'noPolicies', reason: troubleText(error) });
    }
  }

  private async readDetails(name: string): Promise<void> {
    const client = this.clientNow();
    if (!client) return;
    const { signal } = this;
    try {
      const [service, explanation, past] = await Promise.all([
        client.service(name, { signal }),
        client.explain(name, { signal }),
        client.history({ names: [name], limit: DETAIL_EVENTS, signal }),
      ]);
      // The history contains no statistics.
      const events = past.filter(
        (event): event is LifecycleEvent & typeof event =>
          event.type !== 'service.stats' && event.type !== 'stream.reset',
      );
      this.tell({ kind: 'details', name, details: { service, explanation, events } });
    } catch (error) {
      if (!signal.aborted) this.tell({ kind: 'noDetails', name, reason: troubleText(error) });
    }
  }
}
