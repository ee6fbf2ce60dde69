// berth url
import { shownAddress } from '../../protocol/port_protocol.ts';
import { pickFields } from '../../protocol/registration.ts';
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
    const service = await client.service((await stackScope(client, choice)).full(name));
    const address = shownAddress(service);
    if (address === null && !context.out.isData)
      throw new CommandError(`${name} has no port, so it has no URL`);
    context.out.record(pickFields(service, ['name', 'url', 'port', 'status']), () => address ?? '');
    return undefined;
  },
});
