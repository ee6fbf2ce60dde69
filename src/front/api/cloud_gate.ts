// The way to the cloud part: its threads start with the first request that needs them.
import type { CloudViews } from '../views/cloud_views.ts';

/** The cloud part as the front sees it. */
export interface CloudPart {
  readonly views: CloudViews;
  /** Resolves when the cloud's threads are up and have told the views what there is. Rejects as a Failure. */
  ensure: () => Promise<void>;
}

/** Lets requests through once the cloud part is up. */
export class CloudGate {
  readonly views: CloudViews;
  private readonly ensure: () => Promise<void>;
  private isOpen = false;

  constructor({ views, ensure }: CloudPart) {
    this.views = views;
    this.ensure = ensure;
  }

  /**
   * What `work` gives: at once where the cloud part is up, else when it is. Fails as `ensure` does, and with
   * the reason where the cloud part cannot be used.
   */
  pass<T>(work: () => T | Promise<T>): T | Promise<T> {
    if (!this.isOpen) return this.open().then(() => this.enter(work));
    return this.enter(work);
  }

  private async open(): Promise<void> {
    await this.ensure();
    this.isOpen = true;
  }

  private enter<T>(work: () => T | Promise<T>): T | Promise<T> {
    this.views.assertAvailable();
    return work();
  }
}
