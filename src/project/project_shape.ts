// The shape of berth.yaml, which checks the file and is published as its JSON Schema. It checks fields one by
// one; read_project.ts checks what they say together.
import { z } from '../adapters/zod.ts';
import {
  AGENTS_GROUP,
  ENV_KEY_PATTERN,
  GROUP_NAME_PATTERN,
  SERVICE_NAME_PATTERN,
} from '../protocol/names.ts';
import { RESTART_POLICIES } from '../protocol/service.ts';
import { HTTP, SERVICE } from '../settings/limits.ts';
import { DURATION_PATTERN, parseDuration } from './duration.ts';

const withMessage = (error: string) => ({ error });
/** For a required value: the message tells a missing value from a wrong one. */
const requiredMessage = (what: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined ? `is required: ${what}` : `must be ${what}`,
});

const name = z
  .string(withMessage('must be the name of a service'))
  .regex(
    SERVICE_NAME_PATTERN,
    'must be a name of a-z, 0-9, _ and -, at most 63 characters, not beginning with -',
  );

const DURATION_MESSAGE = 'must be a duration such as 30s or 500ms (a bare number is milliseconds)';
const duration = z
  .union(
    [
      z.int(DURATION_MESSAGE).nonnegative(DURATION_MESSAGE),
      z.string().regex(DURATION_PATTERN, DURATION_MESSAGE),
    ],
    withMessage(DURATION_MESSAGE),
  )
  .transform((value) => (typeof value === 'number' ? value : (parseDuration(value) ?? 0)))
  .refine((ms) => ms <= HTTP.maxQueryDurationMs, 'must be at most 1h');

const envKey = z.string().regex(ENV_KEY_PATTERN, 'must be a name of letters, digits and _');
const envValue = z.union([z.string(), z.number(), z.boolean(), z.null()], withMessage('must be a text'));

const READY_MESSAGE = 'must be an http://, https:// or tcp:// URL, a path such as /health, or tcp';
const ready = z.string(withMessage(READY_MESSAGE)).regex(/^(https?:\/\/|tcp:\/\/|\/|tcp$)/, READY_MESSAGE);

const SIGNAL_MESSAGE = 'must be a signal such as SIGTERM or SIGINT';
const signal = z.string(withMessage(SIGNAL_MESSAGE)).regex(/^SIG[A-Z][A-Z0-9]+$/, SIGNAL_MESSAGE);

const PORT_MESSAGE = 'must be a port from 1 to 65535, auto, or null for none';
const port = z.union(
  [z.int(PORT_MESSAGE).min(1, PORT_MESSAGE).max(65535, PORT_MESSAGE), z.literal('auto'), z.null()],
  withMessage(PORT_MESSAGE),
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
            'The port it listens on; auto (the default) chooses a free one and keeps it; null: it has none.',
        })
        .optional(),
      ready: ready
        .meta({
          description:
            'When it counts as running: a URL that answers 2xx or 3xx, a path on its own port, or tcp ' +
            '(its port accepts connections).',
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
            z.array(name),
            z.record(
              name,
              z.strictObject({
                condition: z
                  .literal('ready', withMessage('must be ready, the one condition there is'))
                  .optional(),
              }),
            ),
          ],
          withMessage('must be a list of services of this file'),
        )
        .meta({ description: 'Services of this file that must be ready first.' })
        .optional(),
      group: z
        .string(withMessage('must be the name of a group'))
        .regex(GROUP_NAME_PATTERN, 'must be a name of letters, digits, _ and -, at most 63 characters')
        .refine((group) => group !== AGENTS_GROUP, `must not be ${AGENTS_GROUP}: that group is for agents`)
        .meta({ description: 'The group it belongs to, for `berth group start` and `stop`.' })
        .optional(),
      restart: z
        .enum(RESTART_POLICIES, withMessage('must be no, on-failure or always'))
        .meta({ description: 'Whether it is started again when it ends by itself; default no.' })
        .optional(),
      autostart: z
        .boolean(withMessage('must be true or false'))
        .meta({ description: 'Whether the daemon starts it when it starts itself; default false.' })
        .optional(),
      start_timeout: duration
        .meta({ description: 'How long it may take to become ready; default 30s.' })
        .optional(),
      stop: z
        .strictObject(
          {
            signal: signal.meta({ description: 'The signal that ends it; default SIGTERM.' }).optional(),
            grace: duration
              .meta({ description: 'How long it may take to end before it is killed; default 5s.' })
              .optional(),
          },
          withMessage('must be a map with signal and grace'),
        )
        .meta({ description: 'How it is stopped.' })
        .optional(),
    },
    withMessage('must be a map with cmd and what else the service needs'),
  )
  .meta({ description: 'One service. Keys that begin with x- are yours.' });

export const PROJECT_SHAPE = z
  .strictObject(
    {
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
