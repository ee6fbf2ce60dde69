// The shape of berth.yaml, which validates the file and is published as its JSON Schema. It validates single
// fields; read_project.ts checks fields that depend on each other.
import { cronFault, isTimezone } from '../adapters/cron.ts';
import { z } from '../adapters/zod.ts';
import { DEPENDENCY_CONDITIONS } from '../protocol/dependency_order.ts';
import { globFault } from '../protocol/globs.ts';
import { isHook } from '../protocol/hooks.ts';
import {
  AGENTS_GROUP,
  ENV_KEY_PATTERN,
  GROUP_NAME_PATTERN,
  SERVICE_NAME_PATTERN,
} from '../protocol/names.ts';
import { PORT_PROTOCOLS } from '../protocol/port_protocol.ts';
import { SERVICE_KINDS } from '../protocol/service.ts';
import { isShortName, MAX_PROJECT_NAME, PROJECT_NAME_PATTERN } from '../protocol/stacks.ts';
import { DOOR, SERVICE, TASK, WATCH } from '../settings/limits.ts';
import { DURATION_PATTERN, parseDuration } from './duration.ts';
import {
  duration,
  limitsShape,
  liveShape,
  readyShape,
  restartShape,
  signalShape,
  stopShape,
} from './run_shapes.ts';

const withMessage = (error: string) => ({ error });
/** For a required value: the message distinguishes a missing value from a wrong one. */
const requiredMessage = (what: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined ? `is required: ${what}` : `must be ${what}`,
});

const name = z
  .string(withMessage('must be the name of a service'))
  .regex(
    SERVICE_NAME_PATTERN,
    'must be a name of a-z, 0-9, _ and -, at most 63 characters, not beginning with -',
  )
  .refine(isShortName, 'must not contain --, which separates it from the name of the stack')
  .refine((value) => !isHook(value), 'is the name of a hook');

const SLEEP_RANGE_MESSAGE = 'must be from 1s to 30 days';
const SLEEP_AFTER_MESSAGE = 'must be a duration such as 15m or 90s';
const sleepAfter = z
  .string(withMessage(SLEEP_AFTER_MESSAGE))
  .regex(DURATION_PATTERN, SLEEP_AFTER_MESSAGE)
  .transform((text) => (parseDuration(text) ?? 0) / 60_000);
/** The minutes of `sleep`. */
const sleep = z
  .union(
    [
      z.strictObject({ after: sleepAfter }).transform(({ after }) => after),
      z.strictObject({ after_minutes: z.number() }).transform(({ after_minutes }) => after_minutes),
    ],
    withMessage('must be a map with after, such as 15m, or with after_minutes'),
  )
  .refine(
    (minutes) => Math.round(minutes * 60_000) >= DOOR.minIdleMs && minutes <= DOOR.maxIdleMinutes,
    SLEEP_RANGE_MESSAGE,
  );

const envKey = z.string().regex(ENV_KEY_PATTERN, 'must be a name of letters, digits and _');
const envValue = z.union([z.string(), z.number(), z.boolean(), z.null()], withMessage('must be a text'));

const PORT_MESSAGE = 'must be a port from 1 to 65535, auto, { fixed: <port> }, or null for none';
const portNumber = z.int(PORT_MESSAGE).min(1, PORT_MESSAGE).max(65535, PORT_MESSAGE);
const port = z.union(
  [
    portNumber,
    z.literal('auto'),
    z.null(),
    z.strictObject({ fixed: portNumber.meta({ description: 'The port in every stack.' }) }),
  ],
  withMessage(PORT_MESSAGE),
);

const cronLine = z.string(withMessage('must be a cron line')).superRefine((value, context) => {
  const message = cronFault(value);
  if (message !== null) context.addIssue({ code: 'custom', message });
});
const TIMEZONE_MESSAGE = 'must be a time zone such as Europe/Berlin';
const timezone = z.string(withMessage(TIMEZONE_MESSAGE)).refine(isTimezone, TIMEZONE_MESSAGE);

const condition = z.enum(
  DEPENDENCY_CONDITIONS,
  withMessage('must be started, ready (the default for services) or completed (the default for tasks)'),
);

const GLOBS_MESSAGE = `must be a list of 1 to ${WATCH.maxGlobs} globs, relative to cwd`;
const INPUTS_MESSAGE = `must be a list of up to ${TASK.maxInputGlobs} globs, relative to cwd`;
const LINES_MESSAGE = `must be a list of up to ${WATCH.maxGlobs} lines as in a .gitignore`;
const ACTION_MESSAGE = 'must be restart or a signal such as SIGHUP';
const FLAG_MESSAGE = 'must be true or false';
const glob = z.string(withMessage('must be a glob such as src/**')).superRefine((value, context) => {
  const message = globFault(value);
  if (message !== null) context.addIssue({ code: 'custom', message });
});
const watch = z.strictObject(
  {
    paths: z
      .array(glob, withMessage(GLOBS_MESSAGE))
      .min(1, GLOBS_MESSAGE)
      .max(WATCH.maxGlobs, GLOBS_MESSAGE)
      .meta({ description: 'Globs relative to cwd; a folder means everything in it.' }),
    ignore: z
      .array(z.string(withMessage('must be a text')).min(1, 'must not be empty'), withMessage(LINES_MESSAGE))
      .max(WATCH.maxGlobs, LINES_MESSAGE)
      .meta({ description: 'Lines as in a .gitignore, which win over those of real ones.' })
      .optional(),
    debounce_ms: duration
      .refine((ms) => ms <= WATCH.maxDebounceMs, `must be at most ${WATCH.maxDebounceMs} ms`)
      .meta({ description: 'Time without a change after which something is done; default 300.' })
      .optional(),
    action: z
      .union([z.literal('restart'), signalShape], withMessage(ACTION_MESSAGE))
      .meta({ description: 'restart (the default), or a signal that it is sent.' })
      .optional(),
    cascade: z
      .boolean(withMessage(FLAG_MESSAGE))
      .meta({ description: 'Whether services that depend on it are restarted after it; default false.' })
      .optional(),
  },
  withMessage('must be a map with paths'),
);

export const PROJECT_SERVICE_SHAPE = z
  .strictObject(
    {
      cmd: z
        .string(requiredMessage('the shell command that runs the service'))
        .min(1, 'must not be empty: the shell command that runs the service')
        .max(SERVICE.maxCmdBytes, 'must be at most 64 KiB')
        .meta({ description: 'The shell command of the service. It finds its port in $PORT.' }),
      cwd: z
        .string(withMessage('must be a folder, relative to this file'))
        .meta({
          description: 'The folder it runs in, relative to this file; default: the folder of this file.',
        })
        .optional(),
      port: port
        .meta({
          description:
            'The port it listens on; auto (the default) chooses a free one and keeps it, and null is none. A number holds in ' +
            'the main working tree, and other stacks get a free one; { fixed: 3000 } holds in all.',
        })
        .optional(),
      protocol: z
        .enum(PORT_PROTOCOLS, withMessage('must be http or tcp'))
        .meta({
          description:
            'What it speaks on its port: tcp is anything but HTTP, and then no link to it is shown. The default ' +
            'is http, and tcp for known programs such as postgres and redis-server.',
        })
        .optional(),
      ready: readyShape
        .meta({
          description:
            'When it counts as running: a URL that answers 2xx or 3xx, a path on its own port, tcp ' +
            '(its port accepts connections), or a map.',
        })
        .optional(),
      live: liveShape
        .meta({
          description:
            'A check while it runs; when it fails, the process is ended and restart says what follows.',
        })
        .optional(),
      env: z
        .union(
          [z.record(envKey, envValue), z.array(z.string(withMessage('must be a text such as KEY=value')))],
          withMessage('must be a map of names to texts, or a list of KEY=value'),
        )
        .meta({ description: 'Environment variables; one without a value is passed on from your shell.' })
        .optional(),
      env_file: z
        .union(
          [z.string(), z.array(z.string())],
          withMessage('must be a file of KEY=value lines, relative to this file, or a list of them'),
        )
        .meta({ description: 'Files of KEY=value lines, relative to this file; env wins over them.' })
        .optional(),
      depends_on: z
        .union(
          [
            z.array(z.union([name, z.strictObject({ name, condition: condition.optional() })])),
            z.record(name, z.strictObject({ condition: condition.optional() })),
          ],
          withMessage('must be a list of services of this file, or a map of them with a condition each'),
        )
        .meta({
          description:
            'Services of this file that must be there first: ready, or a task completed; condition: started ' +
            'waits for the process alone.',
        })
        .optional(),
      kind: z
        .enum(SERVICE_KINDS, withMessage('must be service or task'))
        .meta({ description: 'A task runs to its end, such as a migration; default service.' })
        .optional(),
      schedule: z
        .union(
          [
            cronLine,
            z.strictObject({
              cron: cronLine,
              timezone: timezone.optional(),
              catch_up: z.boolean(withMessage('must be true or false')).optional(),
            }),
          ],
          withMessage('must be a cron line, @every 5m, or a map with cron, timezone and catch_up'),
        )
        .meta({
          description:
            'When the task runs by itself: a cron line of five fields or @every 5m. catch_up: one run makes ' +
            'good what was missed.',
        })
        .optional(),
      inputs: z
        .array(glob, withMessage(INPUTS_MESSAGE))
        .max(TASK.maxInputGlobs, INPUTS_MESSAGE)
        .meta({
          description: 'Globs relative to cwd: `berth up` runs the task again when files that match change.',
        })
        .optional(),
      group: z
        .string(withMessage('must be the name of a group'))
        .regex(GROUP_NAME_PATTERN, 'must be a name of letters, digits, _ and -, at most 63 characters')
        .refine((group) => group !== AGENTS_GROUP, `must not be ${AGENTS_GROUP}: that group is for agents`)
        .meta({ description: 'The group it belongs to, for `berth group start` and `stop`.' })
        .optional(),
      restart: restartShape
        .meta({ description: 'Whether it is started again when it ends by itself; default no.' })
        .optional(),
      limits: limitsShape
        .meta({ description: 'What a run may use; one that uses more memory is ended.' })
        .optional(),
      autostart: z
        .boolean(withMessage('must be true or false'))
        .meta({ description: 'Whether the daemon starts it when it starts itself; default false.' })
        .optional(),
      sleep: sleep
        .meta({
          description:
            'Puts it to sleep after this time without a connection and without a byte; the next connection ' +
            'starts it again.',
        })
        .optional(),
      start_timeout: duration
        .meta({ description: 'How long it may take to become ready; default 30s.' })
        .optional(),
      stop: stopShape.meta({ description: 'How it is stopped; a text is the command.' }).optional(),
      watch: watch.meta({ description: 'Files whose changes restart it, or send it a signal.' }).optional(),
    },
    withMessage('must be a map with cmd and what else the service needs'),
  )
  .meta({ description: 'One service. Keys that begin with x- are yours.' });

const NAME_MESSAGE = `must be 1 to ${MAX_PROJECT_NAME} of a-z, 0-9 and single -, and begin with neither`;
const projectNameShape = z
  .string(withMessage(NAME_MESSAGE))
  .regex(PROJECT_NAME_PATTERN, NAME_MESSAGE)
  .max(MAX_PROJECT_NAME, NAME_MESSAGE);

const HOOK_MESSAGE = 'must be a shell command';
const hookCmd = z
  .string(withMessage(HOOK_MESSAGE))
  .min(1, HOOK_MESSAGE)
  .max(SERVICE.maxCmdBytes, 'must be at most 64 KiB');

export const PROJECT_SHAPE = z
  .strictObject(
    {
      name: projectNameShape
        .meta({ description: 'The name of the project; default: that of its folder.' })
        .optional(),
      environment: z
        .enum(['shell', 'daemon'], withMessage('must be shell or daemon'))
        .meta({
          description:
            'The environment that services start from: that of the shell that runs `berth up` (the ' +
            'default), or that of the daemon.',
        })
        .optional(),
      hooks: z
        .strictObject(
          {
            create: hookCmd
              .meta({ description: 'Runs once, before the first start of a stack: `createdb ${slug}`.' })
              .optional(),
            remove: hookCmd
              .meta({ description: 'Runs once, after its last stop: `berth rm --stack`.' })
              .optional(),
          },
          withMessage('must be a map with create and remove'),
        )
        .meta({ description: 'Shell commands that make and remove what a stack needs.' })
        .optional(),
      services: z.record(name, PROJECT_SERVICE_SHAPE, requiredMessage('a map of names to services')),
    },
    withMessage('must be a map with services'),
  )
  .meta({ title: 'berth.yaml', description: 'The services of a project, for `berth up`.' });

export type ProjectServiceShape = z.output<typeof PROJECT_SERVICE_SHAPE>;

/** Keys that the user may add for anchors and notes; they are ignored. */
export const EXTENSION_KEY = /^x-/;

/** The JSON Schema of a project file, in draft 7, which editors support fully. */
export function projectSchema(): object {
  return z.toJSONSchema(PROJECT_SHAPE, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false)
        jsonSchema.patternProperties = { [EXTENSION_KEY.source]: {} };
    },
  });
}
