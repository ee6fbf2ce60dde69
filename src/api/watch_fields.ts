// The field `watch` of a registration: docs/reference.md "Watch".
import { constants } from 'node:os';
import { globFault, hasManyGlobstars } from '../protocol/globs.ts';
import type { WatchSpec } from '../protocol/service.ts';
import { WATCH } from '../settings/limits.ts';
import { flagField, integerField, stringField, z } from './validation.ts';

const PATHS_RULE = `must be an array of 1 to ${WATCH.maxGlobs} globs`;
const IGNORE_RULE = `must be an array of up to ${WATCH.maxGlobs} lines as in a .gitignore`;
const ACTION_RULE = 'must be "restart" or the name of a signal such as SIGHUP';
const LINE_RULE = `must be a text of 1 to ${WATCH.maxGlobLength} characters in one line, with at most ${WATCH.maxStars} **`;

const glob = z.string('must be a glob such as src/**').superRefine((value, context) => {
  const message = globFault(value);
  if (message !== null) context.addIssue({ code: 'custom', message });
});
const isLine = (value: string): boolean =>
  value !== '' && value.length <= WATCH.maxGlobLength && !/[\r\n]/.test(value) && !hasManyGlobstars(value);
const line = stringField(LINE_RULE, isLine);

/** The field as a client sends it. */
export const watchInput = z.strictObject(
  {
    paths: z.array(glob, PATHS_RULE).min(1, PATHS_RULE).max(WATCH.maxGlobs, PATHS_RULE),
    ignore: z.array(line, IGNORE_RULE).max(WATCH.maxGlobs, IGNORE_RULE).optional(),
    debounceMs: integerField(0, WATCH.maxDebounceMs).optional(),
    action: stringField(
      ACTION_RULE,
      (value) => value === 'restart' || Object.hasOwn(constants.signals, value),
    ).optional(),
    cascade: flagField().optional(),
  },
  'must be an object with paths',
);

/** The field as an answer returns it, with every default. */
export const watch = z
  .object({
    paths: z.array(z.string()),
    ignore: z.array(z.string()),
    debounceMs: z.int().min(0),
    action: z.string().meta({ description: 'restart, or the name of a signal' }),
    cascade: z.boolean().meta({ description: 'Services that depend on it are restarted after it' }),
  })
  .meta({ id: 'Watch' });

/** `given` with a default for every absent field; null: nothing is watched. */
export function completeWatch(given: z.infer<typeof watchInput> | null | undefined): WatchSpec | null {
  if (!given) return null;
  const {
    paths,
    ignore = [],
    debounceMs = WATCH.defaultDebounceMs,
    action = 'restart',
    cascade = false,
  } = given;
  return { paths, ignore, debounceMs, action, cascade };
}
