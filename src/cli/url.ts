// berth url
import { command } from './command.ts';

export const url = command({
  about: 'Works for stopped services too: the URL is known before the service runs.',
  args: [{ syntax: '<name>', about: 'the service', completes: 'service' }],
  examples: [['curl "$(berth url web)/health"', 'use a service without knowing its port']],
  run: async (cli, [name = '']) => {
    const resolution = await (await cli.berth()).resolve(name);
    cli.out.record(resolution, () => resolution.url);
    return undefined;
  },
});
