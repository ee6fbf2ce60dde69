// Runs the terminal interface: holds the state, passes messages to it, draws it, and restores the terminal
// on every exit.
import { existsSync } from 'node:fs';
import type { Client } from '../../client/create_client.ts';
import { namedUrl } from '../../client/local_daemon.ts';
import { cloudKeyPath } from '../../settings/state_dir.ts';
import { attachAgent, describeTerminalEnd } from '../kit/attach_agent.ts';
import type { CommandContext } from '../kit/context.ts';
import { frameChanges } from '../kit/frame_changes.ts';
import { browserOpener, spawnOpener } from '../kit/open_browser.ts';
import { DaemonEffects } from './effects.ts';
import { followDaemon } from './follow_daemon.ts';
import { type Effect, initialModel, type Message, type Model, type View, viewOf } from './model.ts';
import { writtenLine } from './styled_line.ts';
import { UserTerminal } from './terminal.ts';
import { troubleText } from './trouble.ts';
import { update } from './update.ts';
import { frameLines } from './view.ts';

/** The least interval between two frames; after a key, a frame is drawn at once. */
const FRAME_MS = 33;
/** The screen shows times in seconds. */
const TICK_MS = 1_000;
/** The views that show workloads. */
const SHOWS_WORKLOADS: ReadonlySet<View['kind']> = new Set(['list', 'workload', 'policies']);

export interface UiOptions {
  hasColours: boolean;
  /** The initial filter of the list. */
  filter: string;
}

/** One run of the interface. */
class Interface {
  private readonly context: CommandContext;
  private readonly hasColours: boolean;
  private readonly terminal: UserTerminal;
  private readonly end = new AbortController();
  private readonly effects: DaemonEffects;
  private model: Model;
  private client: Client | null = null;
  /** The lines that the terminal shows; empty if unknown. */
  private shown: readonly string[] = [];
  private frameTimer: NodeJS.Timeout | undefined;
  /** An attached agent has the terminal. */
  private isAway = false;
  private finish: (code: number) => void = () => {};
  private fail: (error: unknown) => void = () => {};

  constructor(context: CommandContext, { hasColours, filter }: UiOptions) {
    this.context = context;
    this.hasColours = hasColours;
    this.terminal = new UserTerminal({
      typed: (typed) => {
        for (const one of typed) this.tell(one);
        this.draw();
      },
      resized: (size) => {
        this.shown = [];
        this.tell({ kind: 'resized', size });
      },
      closed: () => this.finish(0),
    });
    this.model = initialModel(this.terminal.size, Date.now(), '', filter);
    this.effects = new DaemonEffects(
      () => this.client,
      (message) => this.tell(message),
      this.end.signal,
    );
  }

  /** Resolves with the exit code. */
  async run(): Promise<number> {
    const done = new Promise<number>((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
    const leave = (): void => this.terminal.leave();
    const removeInterrupt = this.context.onInterrupt(leave);
    process.on('exit', leave);
    const ticker = setInterval(() => this.tell({ kind: 'ticked', now: Date.now() }), TICK_MS);
    try {
      this.terminal.enter();
      void this.follow();
      return await done;
    } finally {
      this.end.abort();
      clearInterval(ticker);
      clearTimeout(this.frameTimer);
      leave();
      removeInterrupt();
      process.off('exit', leave);
    }
  }

  private follow(): Promise<void> {
    return followDaemon({
      connect: async () => {
        const local = await this.context.freshLocal();
        const { cloud } = local.settings;
        // The key of a remote daemon is on its own machine.
        const isElsewhere = namedUrl(this.context.globalOptions, process.env) !== undefined;
        const hasClusters = (): boolean =>
          existsSync(cloudKeyPath(cloud.key_file, local.stateDir)) || (isElsewhere && cloud.token !== '');
        return { client: local.client, address: local.url, hasClusters };
      },
      connected: (client) => {
        this.client = client;
      },
      tell: (message) => this.tell(message),
      isInSight: () => !this.isAway && SHOWS_WORKLOADS.has(viewOf(this.model).kind),
      signal: this.end.signal,
    });
  }

  private tell(message: Message): void {
    try {
      const [model, ...effects] = update(this.model, message);
      this.model = model;
      for (const effect of effects) this.perform(effect);
      this.frameTimer ??= setTimeout(() => this.draw(), FRAME_MS);
    } catch (error) {
      this.fail(error);
    }
  }

  private perform(effect: Effect): void {
    if (effect.kind === 'quit') this.finish(effect.code);
    else if (effect.kind === 'suspend') this.terminal.suspend();
    else if (effect.kind === 'redraw') this.terminal.redraw();
    else if (effect.kind === 'copy') this.terminal.copy(effect.text);
    else if (effect.kind === 'openUrl') void this.openUrl(effect.url);
    else if (effect.kind === 'attach') void this.attach(effect.name);
    else this.effects.run(effect);
  }

  /** Draws the changes, but waits until the terminal has accepted the previous frame. */
  private draw(): void {
    clearTimeout(this.frameTimer);
    this.frameTimer = undefined;
    if (this.isAway || this.end.signal.aborted) return;
    if (this.terminal.isBusy) {
      this.terminal.whenReady(() => this.draw());
      return;
    }
    try {
      const { columns } = this.model.size;
      const lines = frameLines(this.model).map((line) => writtenLine(line, columns, this.hasColours));
      const changes = frameChanges(this.shown, lines);
      this.shown = lines;
      if (changes !== '') this.terminal.write(changes);
    } catch (error) {
      this.fail(error);
    }
  }

  private async openUrl(url: string): Promise<void> {
    const program = browserOpener();
    const isOpened = program !== undefined && (await spawnOpener(program, url));
    if (isOpened) this.tell({ kind: 'said', tone: 'good', text: `${url} opens in the browser.` });
    else this.tell({ kind: 'said', tone: 'bad', text: `There is no browser here; y copies ${url}` });
  }

  /** Shows the terminal of an agent until the user detaches. */
  private async attach(name: string): Promise<void> {
    if (!this.client || this.isAway) return;
    this.isAway = true;
    this.terminal.release();
    let said: Message;
    try {
      const { text, isSmooth } = describeTerminalEnd(
        name,
        await attachAgent(this.context, this.client, name, {}),
      );
      said = { kind: 'said', tone: isSmooth ? 'good' : 'bad', text };
    } catch (error) {
      said = { kind: 'said', tone: 'bad', text: troubleText(error) };
    }
    this.isAway = false;
    if (this.end.signal.aborted) return;
    this.terminal.enter();
    this.tell(said);
  }
}

/** Runs the interface on the terminal of stdin and stdout. Resolves with the exit code. */
export const startUi = (context: CommandContext, options: UiOptions): Promise<number> =>
  new Interface(context, options).run();
