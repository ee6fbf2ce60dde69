// berth add
import { resolve } from 'node:path';
import type { Registration } from '../../client/records.ts';
import { checkFromText, probesOwnPort } from '../../project/check_text.ts';
import { shellEnvironment } from '../../protocol/base_environment.ts';
import {
  DEPENDENCY_CONDITIONS,
  type Dependency,
  renamedDependency,
} from '../../protocol/dependency_order.ts';
import { PORT_PROTOCOLS } from '../../protocol/port_protocol.ts';
import { RESTART_POLICIES, SERVICE_KINDS } from '../../protocol/service.ts';
import {
  choiceOption,
  defineCommand,
  durationOption,
  flagOption,
  integerOption,
  listOption,
  type Option,
  repeatedOption,
  textOption,
} from '../kit/command.ts';
import { commandLine, parseEnvEntries } from '../kit/command_line.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { atUrl } from '../kit/format.ts';
import { PLACE_OPTIONS, placeInStack } from '../kit/place_in_stack.ts';

const PORT_RANGE = integerOption(
  '-p, --port <port>',
  'the port it listens on, or none; default: a free one',
  [0, 65535],
);
const portOption: Option<number | 'none' | undefined> = {
  ...PORT_RANGE,
  parse: (value) => (value === 'none' ? value : PORT_RANGE.parse?.(value, undefined)),
};

/** Parses `db` or `db:started`. Throws a UsageError for another condition. */
function parseDependency(text: string): Dependency {
  const [name = '', word, ...more] = text.split(':');
  const condition = DEPENDENCY_CONDITIONS.find((one) => one === word);
  if (word === undefined) return name;
  if (condition !== undefined && more.length === 0) return { name, condition };
  throw new UsageError(
    `--depends-on ${text}: the condition must be one of ${DEPENDENCY_CONDITIONS.join(', ')}`,
  );
}

export const addCommand = defineCommand({
  about:
    'Registers a service under a name, or replaces its registration. Does not start it. The command runs ' +
    'in this folder unless --cwd names another, and finds its port in $PORT. Several words are quoted and ' +
    'joined to one command line.',
  args: [
    { syntax: '<name>', about: 'the name of the service' },
    { syntax: '<command...>', about: 'the shell command; put -- before it if it has options' },
  ],
  options: {
    port: portOption,
    cwd: textOption('--cwd <dir>', 'the folder it runs in; default: this one', 'file'),
    ready: textOption('--ready <url>', 'ready-check: an http or tcp URL, a path such as /health, or tcp'),
    group: textOption('--group <name>', 'the group it belongs to', 'group'),
    env: repeatedOption(
      '-e, --env <KEY=value>',
      'an environment variable; a name alone passes on your value',
    ),
    dependsOn: listOption(
      '--depends-on <names>',
      'what must be there first when its group starts: names, or name:started, name:ready, name:completed',
      'service',
    ),
    protocol: choiceOption(
      '--protocol <protocol>',
      'what it speaks on its port; default http, and tcp for known databases',
      PORT_PROTOCOLS,
    ),
    kind: choiceOption('--kind <kind>', 'a task runs to its end; default service', SERVICE_KINDS),
    inputs: repeatedOption('--input <glob>', 'of a task: files that make `berth up` run it again'),
    schedule: textOption('--schedule <line>', 'when the task runs by itself: a cron line, or "@every 5m"'),
    restart: choiceOption(
      '--restart <policy>',
      'whether to restart it when it ends by itself',
      RESTART_POLICIES,
    ),
    autostart: flagOption('--autostart', 'start it with the daemon'),
    stopSignal: textOption('--stop-signal <signal>', 'the signal that stops it; default SIGTERM'),
    stopGrace: durationOption('--stop-grace <time>', 'time it has to end before it is killed; default 5s'),
    startTimeout: durationOption('--start-timeout <time>', 'time it has to become ready; default 30s'),
    ...PLACE_OPTIONS,
  },
  examples: [
    ['berth add web --ready / -- npm run dev', 'then: berth start web'],
    ["berth add api -p 4000 'cd api && ./run'", 'a single word is the whole command line'],
  ],
  run: async (context, [called = '', ...line], options) => {
    const { port: given, cwd, ready, env, stack, project, all, dependsOn, group, ...rest } = options;
    const client = await context.client();
    const place = await placeInStack(context, client, { stack, project, all });
    const name = place.nameOf(called);
    const free = rest.kind === 'task' ? null : 0;
    const port = given === 'none' ? null : (given ?? free);
    const others = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
    const spec: Registration = {
      ...others,
      name,
      port,
      ready: ready === undefined ? null : checkFromText(ready),
      cmd: commandLine(line),
      cwd: resolve(cwd ?? '.'),
      env: parseEnvEntries(env),
      dependsOn: dependsOn.map(parseDependency).map((one) => renamedDependency(one, place.nameOf)),
      group: place.groupOf(group) ?? null,
      stack: place.stack,
      baseEnv: shellEnvironment(process.env),
    };
    if (port === null && probesOwnPort(spec.ready ?? null))
      throw new UsageError(`--ready ${ready} probes the service's own port, but --port none gives it none`);
    const service = await client.register(spec);
    context.out.record(
      service,
      () => `${name} is registered${atUrl(service)}; \`berth start ${name}\` starts it`,
    );
  },
});
