// berth agent sleep, wake
import type { Client } from '../../client/create_client.ts';
import type { Service } from '../../client/records.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import { namedServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

const agents = { syntax: '<names...>', about: 'the agents', completes: 'agent' } as const;

/** The status of the agent before the change. Rejects with unknown_agent if there is no such agent. */
async function agentStatus(client: Client, name: string): Promise<Service['status']> {
  await client.agent(name);
  return (await client.service(name)).status;
}

export const agentSleepCommand = defineCommand({
  about:
    'Ends the processes of agents that are idle, and keeps their conversations and their screens. Who attaches to ' +
    'one, gives it a prompt, or asks for its page, wakes it.',
  args: [agents],
  options: {
    force: flagOption('--force', 'also an agent whose conversation is not known, and so is lost'),
    ...SCOPE_OPTIONS,
  },
  run: async (context, names, { force, ...choice }) => {
    const client = await context.client();
    const selected = namedServices(await stackScope(client, choice), names);
    return runBatch(context, selected, 'putting to sleep', async (name) => {
      const before = await agentStatus(client, name);
      const answer = await client.sleepAgent(name, { force });
      return { record: answer, text: `is ${answer.status}`, isUnchanged: before === answer.status };
    });
  },
});

export const agentWakeCommand = defineCommand({
  about: 'Starts agents with the conversations that they had. What runs is left alone.',
  args: [agents],
  options: {
    force: flagOption('--force', 'begin a new conversation'),
    ...SCOPE_OPTIONS,
  },
  run: async (context, names, { force, ...choice }) => {
    const client = await context.client();
    const selected = namedServices(await stackScope(client, choice), names);
    return runBatch(context, selected, 'waking', async (name) => {
      const before = await agentStatus(client, name);
      const answer = await client.wakeAgent(name, { force });
      const text = `is ${answer.status} (pid ${answer.pid ?? 'unknown'})`;
      return { record: answer, text, isUnchanged: before === 'running' };
    });
  },
});
