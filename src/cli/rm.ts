// berth rm
import { command } from './command.ts';
import { forEach } from './each.ts';

export const rm = command({
  about: 'A service that runs is stopped first. Its name no longer resolves, and its logs are deleted.',
  args: [{ syntax: '<names...>', about: 'the services', completes: 'service' }],
  run: async (cli, names) => {
    const berth = await cli.berth();
    return forEach(cli, names, 'removing', async (name) => ({
      record: await berth.remove(name),
      text: 'is removed',
    }));
  },
});
