// berth url
import { defineCommand } from '../kit/command.ts';

export const urlCommand = defineCommand({
  about: 'Works for stopped services too: a service keeps its URL.',
  args: [{ syntax: '<name>', about: 'the service', completes: 'service' }],
  examples: [['curl "$(berth url web)/health"', 'use a service without knowing its port']],
  run: async (context, [name = '']) => {
    const resolution = await (await context.client()).resolve(name);
    context.out.record(resolution, () => resolution.url);
    return undefined;
  },
});
