// Which requests a standby forwards, and what it adds to them: docs/reference.md "Shared database".
import { access } from '../../api/access.ts';
import { HOST_SIGNATURE } from '../../protocol/cloud_views.ts';
import type { ForwardedPaths } from '../server/forwarding.ts';
import type { AccessKeys } from './access_keys.ts';
import { type Guard, isCloudPath } from './guard.ts';
import { isPublicPath } from './public_paths.ts';

/** Of the server that forwards: `keys` of its cloud part, `guards` of its listeners. */
interface StandbyAccess {
  keys: AccessKeys | null;
  guards: readonly Guard[];
}

/**
 * The paths under `/k8s`. The lease holder proves no Host but its own, so the standby signs the Host of a
 * request for a proof. Where that is not the standby's either, the standby answers, and refuses.
 */
export function forwardedPaths(current: () => StandbyAccess): ForwardedPaths {
  return {
    passes: isCloudPath,
    isPublic: isPublicPath,
    addedHeaders(path, query, host) {
      if (path !== access.proveCloud.path) return [];
      const { keys, guards } = current();
      if (!keys || !guards.some((guard) => guard.isOwnHost(host))) return null;
      const nonce = new URLSearchParams(query).get('nonce') ?? '';
      return [HOST_SIGNATURE, keys.signHost(host, nonce)];
    },
    passedOn: (address) => current().keys?.signClient(address) ?? '',
  };
}
