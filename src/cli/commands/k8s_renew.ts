// berth k8s renew

import { ACCOUNT_OPTIONS, CONTEXT_OPTIONS, chooseContext, credentialsFor } from '../kit/cluster_login.ts';
import { defineCommand } from '../kit/command.ts';
import { EXIT_CODE } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';

export const clusterRenewCommand = defineCommand({
  about:
    'Gives the cluster the credentials that your kubeconfig has now, as `berth k8s add` does. Workloads keep ' +
    'their ids and settings; tethers stay open.',
  args: [{ syntax: '<cluster>', about: 'the cluster, by name or id', completes: 'cluster' }],
  options: { ...CONTEXT_OPTIONS, ...ACCOUNT_OPTIONS },
  run: async (command, [reference = ''], options) => {
    const { cloud } = await command.client();
    const { id, name } = await findCluster(await command.client(), reference);
    const { namespaces, token_renewal } = await cloud.cluster(id);
    const chosen = await chooseContext(options);
    const account = {
      ...options,
      namespaces: options.namespaces.length > 0 ? options.namespaces : namespaces,
      ownAccount: options.ownAccount || token_renewal !== null,
    };
    const credentials = await credentialsFor(command, chosen, options, account);
    if (!credentials) {
      command.out.note('Nothing is changed.');
      return EXIT_CODE.failed;
    }
    const given = options.namespaces.length > 0 ? { namespaces: [...options.namespaces] } : {};
    const changed = await cloud.changeCluster(id, { ...credentials, ...given });
    command.out.record(changed, () => `${name} has new credentials, of the context ${chosen.context.name}`);
    return undefined;
  },
});
