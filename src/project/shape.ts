// The shape of berth.yaml: it checks the file and is published as its JSON Schema. Only what one field says by itself is
// here; what fields say together is in read.ts.
import { z } from '../adapters/zod.ts';
import { HTTP, SERVICE } from '../limits.ts';
import { AGENTS_GROUP, ENV_KEY, GROUP, NAME } from '../protocol/names.ts';
import { RESTART_POLICIES } from '../protocol/service.ts';
import { DURATION, parseDuration } from './duration.ts';

const said = (error: string) => ({ error });
/** For what may not be left out. */
const needed = (what: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined ? `is required: ${what}` : `must be ${what}`,
});

const name = z
  .string(said('must be the name of a service'))
  .regex(NAME, 'must be a name of a-z, 0-9, _ and -, at most 63 characters, not beginning with -');

const A_DURATION = 'must be a duration such as 30s or 500ms (a bare number is milliseconds)';
const duration = z
  .union(
    [z.int(A_DURATION).nonnegative(A_DURATION), z.string().regex(DURATION, A_DURATION)],
    said(A_DURATION),
  )
  .transform((value) => (typeof value === 'number' ? value : (parseDuration(value) ?? 0)))
  .refine((ms) => ms <= HTTP.queryMs, 'must be at most 1h');

const envKey = z.string().regex(ENV_KEY, 'must be a name of letters, digits and _');
const envValue = z.union([z.string(), z.number(), z.boolean(), z.null()], said('must be a text'));

const A_READY = 'must be an http://, https:// or tcp:// URL, a path such as /health, or tcp';
const ready = z.string(said(A_READY)).regex(/^(https?:\/\/|tcp:\/\/|\/|tcp$)/, A_READY);

const A_SIGNAL = 'must be a signal such as SIGTERM or SIGINT';
const signal = z.string(said(A_SIGNAL)).regex(/^SIG[A-Z][A-Z0-9]+$/, A_SIGNAL);

const A_PORT = 'must be a port from 1 to 65535, or auto';
const port = z.union([z.int(A_PORT).min(1, A_PORT).max(65535, A_PORT), z.literal('auto')], said(A_PORT));

export const SERVICE_SHAPE = z
  .strictObject(
    {
      cmd: z
        .string(needed('the shell command that runs the service'))
        .min(1, 'must not be empty: the shell command that runs the service')
        .max(SERVICE.cmdBytes, 'must be at most 64 KiB')
        .meta({ description: 'The shell command that runs the service. It finds its port in $PORT.' }),
      cwd: z
        .string(said('must be a folder, relative to this file'))
        .meta({
          description: 'The folder it runs in, relative to this file; default: the folder of this file.',
        })
        .optional(),
      port: port
        .meta({ description: 'The port it listens on; auto (the default) chooses a free one and keeps it.' })
        .optional(),
      ready: ready
        .meta({
          description:
            'When it counts as running: a URL that answers 2xx or 3xx, a path on its own port, or tcp (its port accepts connections).',
        })
        .optional(),
      env: z
        .union(
          [z.record(envKey, envValue), z.array(z.string(said('must be a text such as KEY=value')))],
          said('must be a map of names to texts, or a list of KEY=value'),
        )
        .meta({ description: 'Environment variables; one without a value is passed on from your shell.' })
        .optional(),
      env_file: z
        .union(
          [z.string(), z.array(z.string())],
          said('must be a file of KEY=value lines, relative to this file, or a list of them'),
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
                condition: z.literal('ready', said('must be ready, the one condition there is')).optional(),
              }),
            ),
          ],
          said('must be a list of services of this file'),
        )
        .meta({ description: 'Services of this file that must be ready first.' })
        .optional(),
      group: z
        .string(said('must be the name of a group'))
        .regex(GROUP, 'must be a name of letters, digits, _ and -, at most 63 characters')
        .refine((group) => group !== AGENTS_GROUP, `must not be ${AGENTS_GROUP}: that group is for agents`)
        .meta({ description: 'The group it belongs to, for `berth group start` and `stop`.' })
        .optional(),
      restart: z
        .enum(RESTART_POLICIES, said('must be no, on-failure or always'))
        .meta({ description: 'Whether it is started again when it ends by itself; default no.' })
        .optional(),
      autostart: z
        .boolean(said('must be true or false'))
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
          said('must be a map with signal and grace'),
        )
        .meta({ description: 'How it is stopped.' })
        .optional(),
    },
    said('must be a map with cmd and what else the service needs'),
  )
  .meta({ description: 'One service. Keys that begin with x- are yours.' });

export const PROJECT_SHAPE = z
  .strictObject(
    {
      services: z.record(name, SERVICE_SHAPE, needed('a map of names to services')),
    },
    said('must be a map with services'),
  )
  .meta({ title: 'berth.yaml', description: 'The services of a project, for `berth up`.' });

export type ServiceShape = z.output<typeof SERVICE_SHAPE>;

/** Keys for anchors and notes of the user's own; they are not read. */
export const OWN_KEY = /^x-/;

/** The JSON Schema of a project file (draft 7, which is what editors understand fully). */
export function projectSchema(): object {
  return z.toJSONSchema(PROJECT_SHAPE, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) jsonSchema.patternProperties = { [OWN_KEY.source]: {} };
    },
  });
}
