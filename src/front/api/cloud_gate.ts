// Access to the cloud part, whose threads start with the first request that needs them.

import type { LoginSettings } from '../../api/access_shapes.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { CloudViews } from '../views/cloud_views.ts';
import type { RemoteApi } from './remote_api.ts';

/** The cloud part as the front sees it. */
export interface CloudPart {
  readonly views: CloudViews;
  /** Resolves when the cloud's threads are up and the views are filled. Rejects with a Failure. */
  ensure: () => Promise<void>;
  /** Whether other machines reach workloads through this Berth. */
  hasRelay: boolean;
  /** How people log in; null: there is no issuer. */
  login: LoginSettings | null;
  /** The Berth whose clusters and workloads are shown here; null: this one. */
  remote: RemoteApi | null;
}

/** Without a cloud part, none of its routes is served. */
export const noCloud = (): CloudPart => ({
  views: new CloudViews(),
  ensure: async () => {},
  hasRelay: false,
  login: null,
  remote: null,
});

/** Lets requests through once the cloud part is up. */
export class CloudGate {
  readonly views: CloudViews;
  readonly hasRelay: boolean;
  readonly login: LoginSettings | null;
  readonly remote: RemoteApi | null;
  /** Whether the views are filled. */
  isOpen = false;
  private readonly ensure: () => Promise<void>;

  constructor({ views, ensure, hasRelay, login, remote }: CloudPart) {
    this.views = views;
    this.hasRelay = hasRelay;
    this.login = login;
    this.remote = remote;
    this.ensure = ensure;
    views.principals.onLoaded = () => this.openSoon();
  }

  /**
   * Runs `work` at once if the cloud part is up, otherwise as soon as it is. Fails as `ensure` does, and with
   * the reason when the cloud part is unavailable.
   */
  pass<T>(work: () => T | Promise<T>): T | Promise<T> {
    if (!this.isOpen) return this.open().then(() => this.enter(work));
    return this.enter(work);
  }

  /** Starts opening, for requests that do not wait. Errors are left to those that do. */
  openSoon(): void {
    void tolerateFailure(this.open(), () => undefined);
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
