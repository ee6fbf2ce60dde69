// The door of one service, and its sleep: docs/reference.md "Sleep of services". The door itself, which
// carries the bytes, runs on a thread of its own; this part decides what it does.
import type { StoredDoor } from '../../protocol/doors.ts';
import { fail } from '../../protocol/errors.ts';
import { newRunId } from '../../protocol/names.ts';
import {
  doorRule,
  type LastEnd,
  type ServiceSpec,
  type ServiceState,
  type SleepReply,
  type StoredService,
} from '../../protocol/service.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { DoorLink } from './door_link.ts';
import { doorSettings, isOnDoorPort } from './door_settings.ts';
import type { ServiceEffects } from './effects.ts';
import { behindDoor, type Run } from './run.ts';
import { type Slept, sleptEvent, wakeFailedEvent } from './run_events.ts';
import type { FailedWake, ServiceDoorOptions } from './service_door_options.ts';
import { isResting, type LifecycleState, liveRun, serviceStateOf } from './state.ts';

export class ServiceDoor {
  private readonly options: ServiceDoorOptions;
  private readonly link: DoorLink;
  /** null: the door is closed. */
  private row: StoredDoor | null;
  /** Its processes stay awake, because a client started it that way. */
  private keepsAwake: boolean;
  /** `row` was decided by this daemon, or stored by the one before. */
  private isKnown: boolean;
  private sleeping: Promise<SleepReply> | null = null;
  /** A client is waiting for the end of the process being stopped. */
  private isKnocked = false;
  /** A wake has been requested for a waiting client, and the service has been put to sleep since. */
  private isWakeAsked = false;
  private isSleepAsked = false;
  /** Since when the service has been waking; `at` in epoch milliseconds, as its run keeps it. */
  private wakingSince: { at: number; monotonic: number } | null = null;
  private innerPort: number | null = null;
  /** null: no wake has failed since the service last ran. */
  failedWake: FailedWake | null = null;

  constructor(options: ServiceDoorOptions) {
    this.options = options;
    this.row = options.table.get(options.name) ?? null;
    this.isKnown = this.row !== null;
    this.keepsAwake = this.row?.awake === true;
    this.link = new DoorLink({
      ...options,
      settings: () => doorSettings(this.row, options.known()),
      onLost: () => void this.lost(),
    });
  }

  /** Whether its port accepts connections, with or without a process. */
  get isOpen(): boolean {
    return this.row !== null;
  }

  /** The port that another process has instead of the door; null: the door has it, or needs none. */
  get takenPort(): number | null {
    return this.link.takenPort;
  }

  /** What the journal says about the end of `run` if the service went to sleep; null: it did not. */
  sleptAfter(run: string): Slept | null {
    const isItsEnd = this.isAsleepAfter(run) && this.row?.untold === undefined;
    return isItsEnd ? { type: 'service.slept', fields: { name: this.options.name } } : null;
  }

  /** Whether the run (null: the service, which never had one) ended by being put to sleep. */
  private isAsleepAfter(run: string | null): boolean {
    return this.row?.asleepAfter === run;
  }

  /** The service as clients see it. */
  view(state: LifecycleState, end: LastEnd | null, restarts: number): ServiceState {
    const row = serviceStateOf(this.options.name, state, end, restarts);
    const status = this.isAsleep(state, end) ? 'sleeping' : row.status;
    return { ...row, status, isDoorOpen: this.isOpen };
  }

  /** A client requests a start. `awake`: the service is not put to sleep when idle. */
  asked(awake: boolean): void {
    const { phase } = this.options.known().state;
    if (phase === 'idle' || phase === 'waiting' || phase === 'ended') this.keepsAwake = awake;
  }

  private isAsleep(state: LifecycleState, end: LastEnd | null): boolean {
    return isResting(state) && this.isAsleepAfter(end?.run ?? null);
  }

  /** Must be called after each change of the service, so that the door follows. */
  follow(): void {
    const { known } = this.options;
    const { state, stored } = known();
    const run = liveRun(state);
    const isBehindDoor = run?.metadata.doorPort !== undefined;
    // Of a run that has been taken over; without it, its lease would outlive it.
    if (isBehindDoor) this.innerPort ??= run.metadata.port;
    if (this.row && stored && !doorRule(stored.spec) && !isBehindDoor) this.inBackground(this.forget());
    // A run of an earlier daemon that could not store the door.
    if (!this.isKnown && isBehindDoor && state.phase === 'running') {
      this.keepsAwake = run.metadata.awake === true;
      this.inBackground(this.note({}));
    }
    this.followWake(state);
    this.inBackground(this.link.follow());
  }

  /** Starts the process of `run`, behind the door if it has one. Fails as the effect of that name does. */
  async spawn(run: Run, stored: StoredService, last: LastEnd | null): ReturnType<ServiceEffects['spawn']> {
    if (this.wakingSince !== null) {
      run.metadata = { ...run.metadata, wokeAt: this.wakingSince.at };
      run.wokeSince = this.wakingSince.monotonic;
    }
    await this.prepare(run, stored.spec);
    return this.options.effects.spawn(run, stored, last);
  }

  /** Opens the door and gives the process a port of its own. Fails port_in_use. */
  private async prepare(run: Run, spec: ServiceSpec): Promise<void> {
    if (!doorRule(spec) || spec.port === null) return;
    const wasOpen = this.isOpen;
    this.row ??= {};
    try {
      await this.link.openOrRefuse(run.id);
    } catch (error) {
      if (!wasOpen) this.row = null;
      throw error;
    }
    // Before the process exists, so that a later daemon knows.
    if (!wasOpen || (this.row.awake === true) !== this.keepsAwake) await this.note(this.row);
    this.innerPort = await this.options.effects.leaseInnerPort(this.options.ports, this.innerPort);
    run.metadata = behindDoor(run.metadata, this.innerPort, this.keepsAwake);
  }

  /**
   * Puts the service to sleep: ends its process, and holds new connections. Harmless when it is asleep. Fails
   * sleep_refused without `sleep`, storage_full, and as a stop does. `onAccepted`: called unless refused.
   */
  sleep(onAccepted = (): void => {}): Promise<SleepReply> {
    const { name, known } = this.options;
    const { stored } = known();
    if (!stored || !doorRule(stored.spec))
      throw fail('sleep_refused', `${name} has no \`sleep\`, so nothing would wake it`, {
        hint: 'Register it with sleep: {afterMinutes: 15} (in berth.yaml, `sleep: {after: 15m}`), or stop it.',
      });
    onAccepted();
    this.isSleepAsked = true;
    // In a later turn, because `follow` asks whether a sleep is under way.
    const sleeping =
      this.sleeping ??
      Promise.resolve()
        .then(() => this.sleepNow())
        .finally(() => {
          if (this.sleeping === sleeping) this.sleeping = null;
        });
    this.sleeping = sleeping;
    return sleeping;
  }

  /** A client restarts the service, so that it is not asleep after its run has ended. */
  forgoSleep(): void {
    const run = liveRun(this.options.known().state);
    if (!run || !this.isAsleepAfter(run.id)) return;
    this.sleeping = null;
    this.inBackground(this.note({}));
  }

  /** From the door: it has been idle for the time set in `sleep`. */
  async idle(): Promise<null> {
    const { known } = this.options;
    const { state, stored } = known();
    if (state.phase !== 'running' || !stored || !doorRule(stored.spec) || this.sleeping) return null;
    // The door decides, because a client may have connected meanwhile. From then on it holds new connections.
    if (!(await this.link.rest())) return null;
    if (known().state === state && !this.sleeping) await tolerateFailure(this.sleep(), () => null);
    this.follow();
    return null;
  }

  /** From the door: a client is waiting. */
  knocked(): null {
    const { state } = this.options.known();
    if (!this.isOpen) {
      // A stop has closed the door, which only waits for the end of the process.
      this.link.refuse();
      return null;
    }
    this.isKnocked = state.phase === 'stopping' || state.phase === 'ended' || state.phase === 'idle';
    this.followWake(state);
    return null;
  }

  /** A start requested by a wake has begun. */
  waking(): void {
    const { known, context } = this.options;
    const { clock } = context;
    const { state, end } = known();
    if (this.isAsleep(state, end)) this.wakingSince ??= { at: clock.now(), monotonic: clock.monotonic() };
  }

  /**
   * The wake requested for a client has failed, so its connection is not held any longer. After a sleep it
   * is, and the door asks for the next wake while the client waits.
   */
  wakeFailed(reason: string): null {
    const { context, effects, name } = this.options;
    this.isKnocked = false;
    this.wakingSince = null;
    this.isWakeAsked = false;
    if (this.isSleepAsked) return null;
    this.link.refuse();
    // Otherwise a client has stopped it meanwhile.
    if (this.isOpen) {
      this.failedWake = { reason, at: context.clock.now() };
      this.inBackground(effects.appendEvent(wakeFailedEvent(name, reason)));
    }
    return null;
  }

  /** The door has lost its settings. */
  lost(): null {
    this.link.forget();
    this.follow();
    return null;
  }

  /** Closes the door once nothing runs behind it, and keeps it closed at the next start of the daemon. */
  async forget(): Promise<void> {
    const { name, table, onChanged } = this.options;
    this.isKnown = true;
    this.keepsAwake = false;
    if (!this.row) return;
    this.row = null;
    this.isKnocked = false;
    this.isSleepAsked = false;
    await tolerateFailure(table.remove(name), () => undefined);
    onChanged();
  }

  /**
   * Called before the daemon stops the service for its own shutdown, so that the next daemon finds it asleep.
   */
  async suspend(): Promise<void> {
    const run = liveRun(this.options.known().state);
    if (!this.row || !run) return;
    this.keepsAwake = false;
    await this.note({ asleepAfter: run.id });
  }

  /** Resolves when a door that is closing has closed. */
  async closed(): Promise<void> {
    await this.link.closed();
  }

  /** Releases the port that the process had. */
  release(): void {
    if (this.innerPort !== null) this.options.effects.releaseInnerPort();
    this.innerPort = null;
  }

  private async sleepNow(): Promise<SleepReply> {
    const { context, known, name, stop, onChanged } = this.options;
    const { state, end } = known();
    const isOnPort = isOnDoorPort(known());
    const reply = { name, status: 'sleeping' } as const;
    if (this.isAsleep(state, end)) {
      await this.tellSleep();
      return reply;
    }
    this.wakingSince = null;
    const before = this.row;
    // The end of a run that is already being recorded has its own event.
    const isEndDue = 'run' in state && state.phase !== 'ended';
    const asleepAfter = isEndDue ? state.run.id : (end?.run ?? null);
    this.row = isEndDue ? { asleepAfter } : { asleepAfter, untold: newRunId(context.clock.now()) };
    try {
      // From here on new connections are held, so that none reaches a process about to end.
      if (!isOnPort) await this.link.openOrRefuse(null);
      // Stored before the stop, so that whoever finds the run ended knows that the service is asleep.
      await this.options.table.put(name, this.row);
    } catch (error) {
      this.row = before;
      this.follow();
      throw error;
    }
    this.keepsAwake = false;
    if ('run' in state || state.phase === 'waiting') await stop();
    if (isOnPort) await this.link.openOrRefuse(null);
    await this.tellSleep();
    onChanged();
    return reply;
  }

  /** Completes a sleep that an earlier daemon was killed in. */
  async resume(): Promise<void> {
    const { state, end } = this.options.known();
    if (!this.sleeping && this.isAsleep(state, end)) await tolerateFailure(this.tellSleep(), () => undefined);
  }

  /** Journals a sleep that has ended no run, once. */
  private async tellSleep(): Promise<void> {
    const { known, name, stop, effects } = this.options;
    const { asleepAfter, untold } = this.row ?? {};
    if (asleepAfter === undefined || untold === undefined) return;
    if (known().state.phase === 'waiting') await stop();
    await effects.appendEvent(sleptEvent(name, untold));
    if (this.row?.untold === untold) await this.note({ asleepAfter });
  }

  /** Wakes the service for a waiting client, and continues a sleep under way. */
  private followWake(state: LifecycleState): void {
    const { context, name } = this.options;
    if (state.phase === 'running') {
      const { run } = state;
      this.isKnocked = false;
      this.isWakeAsked = false;
      this.wakingSince = null;
      this.failedWake = null;
      // The daemon was killed between the decision and the stop.
      if (this.isAsleepAfter(run.id) && !this.sleeping) this.inBackground(this.sleep());
    }
    if (state.phase !== 'idle' || !this.isKnocked) return;
    this.isKnocked = false;
    this.waking();
    if (!this.isWakeAsked) this.isSleepAsked = false;
    this.isWakeAsked = true;
    context.ref('groups').tell('knocked', { name, at: context.clock.monotonic() });
  }

  /** Stores the row as soon as there is disk space. Without space, a later daemon will not know it. */
  private async note({ awake: _, ...row }: StoredDoor): Promise<void> {
    this.row = this.keepsAwake ? { ...row, awake: true } : row;
    this.isKnown = true;
    await tolerateFailure(this.options.table.put(this.options.name, this.row), () => undefined);
  }

  private inBackground(work: Promise<unknown>): void {
    tolerateFailure(work, () => undefined).catch((error: unknown) => this.options.context.crash(error));
  }
}
