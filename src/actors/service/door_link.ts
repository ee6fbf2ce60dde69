// What a service tells its door, which listens on a thread of its own.
import type { DoorSettings } from '../../protocol/doors.ts';
import { isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { DOOR } from '../../settings/limits.ts';
import type { ServiceDoorOptions } from './service_door_options.ts';

interface DoorLinkOptions extends Pick<ServiceDoorOptions, 'context' | 'name' | 'effects'> {
  /** What the door should do now; null: be closed. */
  settings: () => DoorSettings | null;
  /** The door has lost its settings. */
  onLost: () => void;
}

export class DoorLink {
  private readonly options: DoorLinkOptions;
  private readonly address: `door:${string}`;
  /** The last settings sent to the door, as JSON; empty: they must be sent again. */
  private told = '';
  private isThreadUp = false;
  /** The port that another process has instead of the door; null: the door has it, or needs none. */
  takenPort: number | null = null;
  private closing: Promise<null> = Promise.resolve(null);
  private cancelRetry = (): void => {};

  constructor(options: DoorLinkOptions) {
    this.options = options;
    this.address = `door:${options.name}`;
  }

  /** Sends the door its settings if they have changed. */
  async follow(): Promise<void> {
    const settings = this.options.settings();
    const text = JSON.stringify(settings);
    if (text === this.told || (!settings && this.told === '')) return;
    this.told = text;
    await (settings ? this.tell() : this.shut());
  }

  /** The door no longer has the settings that it was sent: the next `follow` sends them again. */
  forget(): void {
    this.told = '';
  }

  /**
   * Has the door hold new connections if it has been idle for its time. Resolves with whether it was; a
   * client may have connected meanwhile.
   */
  async rest(): Promise<boolean> {
    const { held } = await this.options.context.ref(this.address).ask('rest', {});
    if (held) this.forget();
    return held;
  }

  /** Resets the connections that the door holds. */
  refuse(): void {
    this.options.context.ref(this.address).tell('refuse', {});
  }

  /**
   * Opens the door if necessary, and sends it its settings. Fails port_in_use, which names the holder of the
   * port in the error and in an event. `run` null: no run is being started.
   */
  async openOrRefuse(run: string | null): Promise<void> {
    try {
      await this.open();
    } catch (error) {
      const port = this.options.settings()?.port;
      if (!isFailure(error) || error.code !== 'port_in_use' || port === undefined) throw error;
      throw await this.options.effects.portConflict(port, run);
    }
  }

  /** Resolves when a door that is closing has closed. */
  async closed(): Promise<void> {
    await tolerateFailure(this.closing, () => null);
  }

  private async open(): Promise<void> {
    const { context, settings: settingsNow, onLost } = this.options;
    const { address } = this;
    if (!this.isThreadUp) {
      await context.ref('threads').ask('ensure', { address });
      this.isThreadUp = true;
      context.watch(address, () => {
        this.isThreadUp = false;
        onLost();
      });
    }
    const settings = settingsNow();
    if (!settings) return;
    this.told = JSON.stringify(settings);
    await context.ref(address).ask('set', settings);
    this.takenPort = null;
  }

  /** Like `openOrRefuse`, but names the holder of a taken port once, and tries again. */
  private async tell(): Promise<void> {
    const { context, effects, settings } = this.options;
    this.cancelRetry();
    try {
      await this.open();
    } catch (error) {
      if (!isFailure(error)) throw error;
      const port = settings()?.port;
      this.cancelRetry = context.clock.after(DOOR.reopenMs, () => this.tellAgain());
      if (error.code !== 'port_in_use' || port === undefined || port === this.takenPort) return;
      this.takenPort = port;
      await effects.portConflict(port, null);
    }
  }

  private tellAgain(): void {
    tolerateFailure(this.tell(), () => undefined).catch((error: unknown) =>
      this.options.context.crash(error),
    );
  }

  private async shut(): Promise<void> {
    this.cancelRetry();
    this.told = '';
    this.takenPort = null;
    if (!this.isThreadUp) return;
    this.closing = this.options.context.ref(this.address).ask('close', {});
    await this.closing;
  }
}
