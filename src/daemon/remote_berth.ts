// The Berth of `cloud.remote`, for the threads that use it: docs/reference.md "Remote tethers".
import type { RemoteWorkloads } from '../actors/tethers/tether_records.ts';
import { openRelay } from '../adapters/relay/dial_relay.ts';
import { RelayLink } from '../adapters/relay/relay_link.ts';
import { access } from '../api/access.ts';
import { isBerthError } from '../client/errors.ts';
import { nodeTransport } from '../client/node_transport.ts';
import {
  admitToRelay,
  connectRemote,
  type RemoteBerth,
  remoteFailure,
  remoteKey,
  watchHolder,
} from '../client/remote_berth.ts';
import type { RemoteApi } from '../front/api/remote_api.ts';
import { fail } from '../protocol/errors.ts';
import { systemClock } from '../runtime/clock.ts';
import { SettingsError } from '../settings/config.ts';

/** Passes `chunks` on until one comes after `isSameHolder` has become false. */
async function* chunksWhile(
  isSameHolder: () => boolean,
  chunks: AsyncIterable<string>,
): AsyncGenerator<string> {
  for await (const chunk of chunks) {
    if (!isSameHolder()) return;
    yield chunk;
  }
}

/** Its API, to which the front forwards requests. */
export function remoteApi(remote: RemoteBerth): RemoteApi {
  return {
    send: async ({ method, path, headers, body, isStreamed, signal }) => {
      try {
        const isSameHolder = watchHolder(remote);
        const key = await remoteKey(remote);
        const answer = await nodeTransport.request({
          method,
          url: remote.url + path,
          headers,
          isBuffered: !isStreamed,
          signal,
          access: key && { key, proofPath: access.proveCloud.path, asksTokenless: false },
          ...(body === null ? {} : { body }),
        });
        return { ...answer, chunks: () => chunksWhile(isSameHolder, answer.chunks()) };
      } catch (error) {
        if (isBerthError(error) || error instanceof SettingsError) throw remoteFailure(error);
        // The reason of its signal: the client has disconnected, or the answer is late.
        throw fail('remote_unreachable', `the other Berth does not respond: ${(error as Error).message}`);
      }
    },
  };
}

/** Its workloads, as tethers need them. */
export function remoteWorkloads(remote: RemoteBerth): RemoteWorkloads {
  const client = connectRemote(remote);
  return {
    url: remote.url,
    referenceOf: async (id) => {
      try {
        const { cluster_id: clusterId, kind, namespace, name } = await client.cloud.workload(id);
        return { clusterId, kind, namespace, name };
      } catch (error) {
        throw remoteFailure(error);
      }
    },
  };
}

/** The link to its relay. */
export function remoteLink(remote: RemoteBerth, onDefect: (error: unknown) => void): RelayLink {
  const client = connectRemote(remote);
  return new RelayLink({
    clock: systemClock,
    watchHolder: () => watchHolder(remote),
    dial: (onClosed) => openRelay(() => admitToRelay(client, remote.url), systemClock, onClosed),
    onDefect,
  });
}
