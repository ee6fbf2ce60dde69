// berth cloud token
import { defineCommand } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';

export const cloudTokenCommand = defineCommand({
  about: 'The token gives access to all registered clusters, with the rights of their kubeconfigs.',
  examples: [
    [
      'curl -H "Authorization: Bearer $(berth cloud token)" http://localhost:11611/k8s/workloads',
      'use the cloud API',
    ],
  ],
  run: async (context) => {
    const local = await context.local();
    const token = local.cloudToken();
    if (token === null) {
      throw new CommandError(
        'there is no cloud token yet',
        '`berth daemon start` makes one at the first start; or set cloud.token in the configuration.',
      );
    }
    context.out.record({ token }, () => token);
  },
});
