// berth url
import { defineCommand } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

export const urlCommand = defineCommand({
  about: 'Works for stopped services too: a service keeps its URL.',
  args: [{ syntax: '<name>', about: 'the service', completes: 'service' }],
  options: SCOPE_OPTIONS,
  examples: [['curl "$(berth url web)/health"', 'use a service without knowing its port']],
  run: async (context, [name = ''], choice) => {
    const client = await context.client();
    const resolution = await client.resolve((await stackScope(client, choice)).full(name));
    const { url } = resolution;
    if (url === null && !context.out.isData) throw new CommandError(`${name} has no port, so it has no URL`);
    context.out.record(resolution, () => url ?? '');
    return undefined;
  },
});
