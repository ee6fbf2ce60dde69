// berth rm

import { runBatch } from '../kit/batch.ts';
import { defineCommand } from '../kit/command.ts';

export const rmCommand = defineCommand({
  about: 'Stops a running service first. Its name no longer resolves, and its logs are deleted.',
  args: [{ syntax: '<names...>', about: 'the services', completes: 'service' }],
  run: async (context, names) => {
    const client = await context.client();
    return runBatch(context, names, 'removing', async (name) => ({
      record: await client.remove(name),
      text: 'is removed',
    }));
  },
});
