// The log of one service as it grows, and the explanation of the service's state.
import type { Client } from '../client/browser.ts';

const INITIAL_LINES = 200;
const MAX_LINES = 2_000;
/** Within this distance of its end, the list scrolls along with new lines. */
const NEAR_END_PX = 8;

/** The elements of the panel. */
export interface LogElements {
  panel: HTMLElement;
  title: HTMLElement;
  state: HTMLElement;
  why: HTMLElement;
  lines: HTMLElement;
}

/** Shows one log at a time. */
export class LogPanel {
  private readonly client: Client;
  private readonly elements: LogElements;
  private shown: { name: string; stop: AbortController } | null = null;
  /** Lines not shown yet: a tab in the background draws nothing. */
  private pendingLines: string[] = [];
  private isDrawing = false;

  constructor(client: Client, elements: LogElements) {
    this.client = client;
    this.elements = elements;
  }

  /** Shows the log of `name` with its last lines first; null: closes the panel. */
  show(name: string | null): void {
    if (name === this.shown?.name) return;
    const { panel, title, why, lines } = this.elements;
    this.shown?.stop.abort();
    this.shown = null;
    this.pendingLines = [];
    panel.hidden = name === null;
    title.textContent = name;
    why.textContent = '';
    lines.textContent = '';
    if (name === null) return;
    const stop = new AbortController();
    this.shown = { name, stop };
    panel.scrollIntoView({ block: 'nearest' });
    void this.follow(name, stop.signal);
    void this.explain(name);
  }

  /** Shows the explanation of `name` again, if its log is shown. */
  async explain(name: string): Promise<void> {
    const { shown } = this;
    if (name !== shown?.name) return;
    const text = await this.client.explain(name).then(
      ({ reason, next }) => `${reason} ${next}`,
      (error: Error) => error.message,
    );
    if (shown === this.shown) this.elements.why.textContent = text;
  }

  private async follow(name: string, signal: AbortSignal): Promise<void> {
    const { state } = this.elements;
    const say = (text: string): void => {
      if (!signal.aborted) state.textContent = text;
    };
    say('');
    const onState = (now: { open: true } | { open: false; error: Error }): void =>
      say(now.open ? 'following' : `connection lost: ${now.error.message}; trying again`);
    try {
      for await (const line of this.client.followLogs(name, { lines: INITIAL_LINES, signal, onState })) {
        if (signal.aborted) return;
        this.add(line);
      }
      say('ended');
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  }

  private add(line: string): void {
    this.pendingLines.push(line);
    if (this.pendingLines.length > 2 * MAX_LINES) this.pendingLines = this.pendingLines.slice(-MAX_LINES);
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const { lines } = this.elements;
    this.isDrawing = false;
    const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < NEAR_END_PX;
    lines.append(...this.pendingLines.slice(-MAX_LINES).map((line) => new Text(`${line}\n`)));
    this.pendingLines = [];
    while (lines.childNodes.length > MAX_LINES) lines.firstChild?.remove();
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
  }
}
