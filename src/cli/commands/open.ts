// berth open
import { defineCommand, flagOption } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';
import { browserOpener, spawnOpener } from '../kit/open_browser.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

export const openCommand = defineCommand({
  about:
    'Without a name, opens the dashboard. Its URL carries a code after the #, which browsers never send and ' +
    'which is good once, for five minutes. Without a browser, prints the URL; --print does so in any case, ' +
    'as for a browser that cannot read the state directory.',
  args: [{ syntax: '[name]', about: 'the service', completes: 'running' }],
  options: { print: flagOption('--print', 'print the URL, open nothing'), ...SCOPE_OPTIONS },
  run: async (context, [name], { print, ...choice }) => {
    const { client, url, settings } = await context.local();
    const program = print ? undefined : browserOpener();
    const hasToken = name === undefined && settings.auth.token !== '';
    const { code, file } = hasToken
      ? await client.pageCode({ file: program !== undefined })
      : { code: null, file: null };
    const dashboard = (): string => `${url()}/${code === null ? '' : `#code=${code}`}`;
    const addressOf = async (service: string) => {
      const {
        port,
        protocol,
        url: address,
      } = await client.service((await stackScope(client, choice)).full(service));
      if (protocol === 'tcp' && port !== null)
        throw new CommandError(`${service} speaks no HTTP, so a browser cannot open localhost:${port}`);
      return address;
    };
    const address = name === undefined ? dashboard() : await addressOf(name);
    if (address === null) throw new CommandError(`${name} has no port, so it has no URL`);
    // Every user of the machine can read the browser's arguments, so a file contains the code.
    const opened = program !== undefined && (await spawnOpener(program, file ?? address));
    if (!opened || context.out.isData) context.out.record({ url: address, opened }, () => address);
  },
});
