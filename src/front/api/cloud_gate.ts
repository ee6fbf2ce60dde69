// Access to the cloud part, whose threads start with the first request that needs them.

import type { CloudViews } from '../views/cloud_views.ts';
import type { RemoteApi } from './remote_api.ts';

/** The cloud part as the front sees it. */
export interface CloudPart {
  readonly views: CloudViews;
  /** Resolves when the cloud's threads are up and the views are filled. Rejects with a Failure. */
  ensure: () => Promise<void>;
  /** Whether other machines reach workloads through this one. */
  hasRelay: boolean;
  /** The Berth whose clusters and workloads are shown here; null: its own. */
  remote: RemoteApi | null;
}

/** Lets requests through once the cloud part is up. */
export class CloudGate {
  readonly views: CloudViews;
  readonly hasRelay: boolean;
  readonly remote: RemoteApi | null;
  private readonly ensure: () => Promise<void>;
  private isOpen = false;

  constructor({ views, ensure, hasRelay, remote }: CloudPart) {
    this.views = views;
    this.hasRelay = hasRelay;
    this.remote = remote;
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
