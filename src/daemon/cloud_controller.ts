// The cloud part as the main thread sees it: its threads start when a request or a registered cluster needs
// them.
import { existsSync } from 'node:fs';
import { hasRemoteToken, type RemoteBerth } from '../client/remote_berth.ts';
import type { CloudFront } from '../front/front.ts';
import { CloudViews } from '../front/views/cloud_views.ts';
import { cloudViewsActor } from '../front/views/cloud_views_actor.ts';
import { ERRORS } from '../protocol/errors.ts';
import { type Node, tolerateFailure } from '../runtime/actor.ts';
import { type Settings, SettingsError } from '../settings/config.ts';
import { ensureSecret } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { report } from './daemon_log.ts';
import type { RelaySettings, ThreadData } from './thread_data.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';
import { threadsActor } from './threads_actor.ts';
import { userVerifier } from './user_verifier.ts';

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

/** How people log in here; null: only with tokens of this Berth. */
function loginSettings({ cloud }: Settings): CloudFront['login'] {
  const { oidc_issuer: issuer, oidc_audience: audience, oidc_client_id: client, oidc_scope: scope } = cloud;
  return issuer === '' ? null : { issuer, client_id: client || audience, audience, scope };
}

/** Where other Berths connect (only with `cloud.bind`): docs/reference.md "Relay"; null: nowhere. */
export function relaySettings(settings: Settings, stateDir: string): RelaySettings | null {
  const {
    bind,
    relay_port: port,
    remote,
    behind_tls: isBehindProxy,
    tls_cert: cert,
    tls_key: key,
  } = settings.cloud;
  // A Berth that shows another one's workloads has none of its own to relay.
  if (bind === '' || port === -1 || remote !== '') return null;
  const address = { bind, port, ...(cert === '' ? {} : { tls: { cert, key } }) };
  return { address, isBehindProxy, cloudToken: resolveCloudToken(settings, stateDir) };
}

/**
 * The Berth of `cloud.remote`, with the token of the settings, of `<state>/remote-token` or of `berth login`;
 * null: none. Throws a SettingsError when the token is missing: docs/reference.md "Remote tethers".
 */
export function remoteBerth({ cloud }: Settings, stateDir: string): RemoteBerth | null {
  if (cloud.remote === '') return null;
  if (cloud.remote_token) return { url: cloud.remote, token: cloud.remote_token };
  if (hasRemoteToken(stateDir, cloud.remote)) return { url: cloud.remote, token: { stateDir } };
  throw new SettingsError(
    `cloud.remote = "${cloud.remote}" needs the token of that Berth: berth login ${cloud.remote}, ` +
      `or put it into ${statePaths(stateDir).remoteToken} (chmod 600), or set BERTH_REMOTE_TOKEN`,
  );
}

export class CloudController {
  private readonly node: Node;
  private readonly threads: ThreadSupervisor;
  private readonly relay: RelaySettings | null;
  private readonly remote: RemoteBerth | null;
  private readonly isShared: boolean;
  private readonly views = new CloudViews();

  constructor(
    node: Node,
    threads: ThreadSupervisor,
    { relay, remote, keyFile, databaseUrl }: ThreadData['cloud'],
  ) {
    this.node = node;
    this.threads = threads;
    this.relay = relay;
    this.remote = remote;
    this.isShared = databaseUrl !== '';
    this.views.principals.isExpected = remote === null && (this.isShared || existsSync(keyFile));
  }

  /** The cloud's part of the front. */
  async front(settings: Settings, token: string): Promise<CloudFront> {
    this.views.principals.verifier = await userVerifier(settings);
    await this.node.start('cloudviews', cloudViewsActor, this.views);
    await this.node.start('threads', threadsActor, this.threads);
    if (this.isShared) this.node.onPeerLost((peer) => this.onThreadLost(peer));
    return {
      token,
      views: this.views,
      ensure: () => this.ensure(),
      ownListener: ownListener(settings),
      hasRelay: this.relay !== null,
      login: loginSettings(settings),
      remote: this.remote && (await import('./remote_berth.ts')).remoteApi(this.remote),
    };
  }

  /** What the views have may be out of date at once: another Berth may have the clusters by now. */
  private onThreadLost(peer: string): void {
    if (peer !== 'cloud') return;
    const reason = 'this Berth has lost its cloud part, which starts again';
    this.views.markUnavailable('standing_by', reason, ERRORS.standing_by.hint, null);
  }

  /**
   * Starts the cloud part if a cluster may be registered, another Berth's are shown, or a database is shared,
   * so that watches, tethers and sweeper resume with the daemon.
   */
  resume(keyFile: string): void {
    if (this.remote !== null || this.isShared || existsSync(keyFile))
      this.ensure().catch((error: Error) => report(`the cloud part does not start: ${error.message}`));
  }

  /** Resolves when the cloud part is up and the views are filled. Rejects with a Failure. */
  async ensure(): Promise<void> {
    await this.threads.ensure('cloud');
    if (this.relay) await this.threads.ensureFor('relay');
    if (this.remote) {
      // Replies once the tethers have reached the views. `tethers` owns all rows there are here.
      await this.node.ref('tethers').ask('boot', {});
      return;
    }
    // Fails `gone` when the cloud part is closed; the views know why.
    await tolerateFailure(this.node.ref('clusters').ask('viewsReady', {}), () => null);
  }
}
