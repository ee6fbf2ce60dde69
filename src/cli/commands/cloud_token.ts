// berth cloud token
import { defineCommand } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';

export const cloudTokenCommand = defineCommand({
  about: 'Whoever has it may do with the registered clusters what their kubeconfigs allow.',
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
        'One is made in the state directory when the daemon first starts; or set cloud.token in the configuration.',
      );
    }
    context.out.record({ token }, () => token);
  },
});
