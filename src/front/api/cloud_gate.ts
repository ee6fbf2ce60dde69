// Access to the cloud part, whose threads start with the first request that needs them.
import type { CloudViews } from '../views/cloud_views.ts';

/** The cloud part as the front sees it. */
export interface CloudPart {
  readonly views: CloudViews;
  /** Resolves when the cloud's threads are up and the views are filled. Rejects with a Failure. */
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
   * Runs `work`: at once when the cloud part is up, else as soon as it is. Fails as `ensure` does, and with
   * the reason when the cloud part is unavailable.
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
