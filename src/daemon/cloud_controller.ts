// The cloud part as the main thread sees it: its threads start when a request or a registered cluster needs
// them.
import { existsSync } from 'node:fs';
import type { RelayAddress } from '../adapters/relay/relay_server.ts';
import type { CloudFront } from '../front/front.ts';
import { CloudViews } from '../front/views/cloud_views.ts';
import { cloudViewsActor } from '../front/views/cloud_views_actor.ts';
import { type Node, tolerateFailure } from '../runtime/actor.ts';
import type { Settings } from '../settings/config.ts';
import { ensureSecret } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { report } from './daemon_log.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';
import { threadsActor } from './threads_actor.ts';

/**
 * `cloud.token`, or the token in `<state>/cloud-token`, created at the first start:
 * docs/reference.md "Tokens".
 */
export const resolveCloudToken = ({ cloud }: Settings, stateDir: string): string =>
  cloud.token || ensureSecret(statePaths(stateDir).cloudToken).toString('utf8').trim();

function ownListener({ cloud }: Settings): CloudFront['ownListener'] {
  if (cloud.bind === '') return null;
  const { bind, port, tls_cert: cert, tls_key: key } = cloud;
  return { bind, port, ...(cert === '' ? {} : { tls: { cert, key } }) };
}

/** Where other Berths connect, with `cloud.bind` alone: docs/reference.md "Relay"; null: nowhere. */
export function relayAddress(
  settings: Settings,
  stateDir: string,
): (RelayAddress & { cloudToken: string }) | null {
  const { bind, relay_port: port, tls_cert: cert, tls_key: key } = settings.cloud;
  if (bind === '' || port === -1) return null;
  const cloudToken = resolveCloudToken(settings, stateDir);
  return { bind, port, cloudToken, ...(cert === '' ? {} : { tls: { cert, key } }) };
}

export class CloudController {
  private readonly node: Node;
  private readonly threads: ThreadSupervisor;
  private readonly hasRelay: boolean;
  private readonly views = new CloudViews();

  /** `hasRelay`: whether other Berths may connect. */
  constructor(node: Node, threads: ThreadSupervisor, hasRelay: boolean) {
    this.node = node;
    this.hasRelay = hasRelay;
    this.threads = threads;
  }

  /** The cloud's part of the front. */
  async front(settings: Settings, token: string): Promise<CloudFront> {
    await this.node.start('cloudviews', cloudViewsActor, this.views);
    await this.node.start('threads', threadsActor, this.threads);
    return { token, views: this.views, ensure: () => this.ensure(), ownListener: ownListener(settings) };
  }

  /**
   * Starts the cloud part if a cluster may be registered, so that its watches, tethers and sweeper resume
   * with the daemon.
   */
  resume(keyFile: string): void {
    if (existsSync(keyFile))
      this.ensure().catch((error: Error) => report(`the cloud part does not start: ${error.message}`));
  }

  private async ensure(): Promise<void> {
    await this.threads.ensure('cloud');
    if (this.hasRelay) await this.threads.ensureFor('relay');
    // Fails `gone` when the cloud part is closed: the views know why.
    await tolerateFailure(this.node.ref('clusters').ask('viewsReady', {}), () => null);
  }
}
