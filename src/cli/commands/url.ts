// berth url
import { defineCommand } from '../kit/command.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

export const urlCommand = defineCommand({
  about: 'Works for stopped services too: a service keeps its URL.',
  args: [{ syntax: '<name>', about: 'the service', completes: 'service' }],
  options: SCOPE_OPTIONS,
  examples: [['curl "$(berth url web)/health"', 'use a service without knowing its port']],
  run: async (context, [name = ''], choice) => {
    const client = await context.client();
    const resolution = await client.resolve((await stackScope(client, choice)).full(name));
    context.out.record(resolution, () => resolution.url);
    return undefined;
  },
});
