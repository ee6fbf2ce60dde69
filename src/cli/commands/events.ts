// berth events
import type { Client } from '../../client/create_client.ts';
import type { DaemonEvent } from '../../client/records.ts';
import { eventSubject, eventText, isAlarming } from '../../presentation/event_text.ts';
import { whenText } from '../../presentation/format.ts';
import { EVENT_TYPES, type EventType, LIFECYCLE_EVENT_TYPES } from '../../protocol/events.ts';
import { nameInStack } from '../../protocol/stacks.ts';
import { defineCommand, flagOption, integerOption, listOption } from '../kit/command.ts';
import { type CommandContext, onStreamState } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { safeJson, sanitizeLine } from '../kit/sanitize.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope, UNREGISTERED } from '../kit/stack_scope.ts';

const TYPE_WIDTH = Math.max(...LIFECYCLE_EVENT_TYPES.map((type) => type.length));

function printEvent(context: CommandContext, { label }: StackScope, event: DaemonEvent): void {
  const { out } = context;
  if (out.isData) {
    out.line(safeJson(event));
    return;
  }
  const { type, data } = event;
  const padded = type.padEnd(TYPE_WIDTH);
  const title = isAlarming(event) ? out.style('red', padded) : padded;
  const time = data.at === undefined ? '--:--:--' : whenText(data.at, Date.now());
  const text = [label(eventSubject(event)), eventText(event)].filter(Boolean).join(' ');
  out.line(`${out.style('dim', time)}  ${title}  ${sanitizeLine(text)}`);
}

/**
 * The event types that `given` names, in full or by one part such as `crashed`. Throws a UsageError for an
 * unknown one.
 */
function matchingTypes(given: readonly string[]): EventType[] {
  return given.flatMap((word) => {
    const found = EVENT_TYPES.filter((type) => type === word || type.split('.').includes(word));
    if (found.length > 0) return found;
    throw new UsageError(`${word} is no type of event`, `There are ${EVENT_TYPES.join(', ')}.`);
  });
}

type StackOnly = StackScope & { stack: string };

/** Whether `scope` is one stack, which the daemon knows. */
const isOfStack = (scope: StackScope): scope is StackOnly =>
  scope.stack !== null && scope.stack !== UNREGISTERED;

/** The registered names for `names`. A service that was removed is still found by its name in the stack. */
const registeredNames = (scope: StackScope, names: readonly string[]): string[] =>
  names.flatMap((name) =>
    isOfStack(scope) && scope.full(name) === name
      ? [name, nameInStack(scope.stack, name)]
      : [scope.full(name)],
  );

const namesInStack = async (client: Client, { stack }: StackOnly): Promise<string[]> =>
  (await client.services()).filter((service) => service.stack === stack).map(({ name }) => name);

/** Whether an event is of the scope. One about no name, such as a gap in the stream, is of every scope. */
function isInScope(scope: StackScope, event: DaemonEvent): boolean {
  const subject = eventSubject(event);
  return !isOfStack(scope) || subject === '' || scope.label(subject) !== subject;
}

/** Names those of `given` that are no services now: their events are awaited, or they are mistyped. */
async function warnOfUnknown(context: CommandContext, scope: StackScope, given: readonly string[]) {
  if (given.length === 0) return;
  const known = new Set((await (await context.client()).services()).map(({ name }) => name));
  for (const name of given)
    if (!known.has(scope.full(name)))
      context.out.warn(`there is no service ${name} now; its events are shown once it is registered`);
}

export const eventsCommand = defineCommand({
  about:
    'Shows events until Ctrl-C, across restarts of the daemon. Leaves out the statistics of each running ' +
    'service, sent every 2 s, unless --type names them. --json prints one object a line, also with --past.',
  args: [
    {
      syntax: '[names...]',
      about: 'the services or agents; default: all of the stack',
      completes: 'service',
    },
  ],
  options: {
    type: listOption('--type <types>', 'only these types, such as crashed or service.started', EVENT_TYPES),
    since: integerOption('--since-id <id>', 'first replay the events after this one', [
      0,
      Number.MAX_SAFE_INTEGER,
    ]),
    past: flagOption('--past', 'show the stored events and end'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth events --type crashed', 'every crash from now on'],
    ['berth events --past web', 'the history of web'],
  ],
  run: async (context, given, { type, since, past, ...choice }) => {
    const client = await context.client();
    const scope = await stackScope(client, choice);
    const names = registeredNames(scope, given);
    const types = type.length > 0 ? matchingTypes(type) : LIFECYCLE_EVENT_TYPES;
    // Services that are registered later, or were removed, belong to the stack too.
    const isWanted = (event: DaemonEvent): boolean => names.length > 0 || isInScope(scope, event);
    if (past) {
      // The daemon filters, so that busy services of other stacks do not use up the limit.
      const asked = names.length > 0 || !isOfStack(scope) ? names : await namesInStack(client, scope);
      const found = await client.history({ types, names: asked, limit: 1024, since });
      const rows = found.filter(isWanted);
      for (const event of rows) printEvent(context, scope, event);
      if (rows.length === 0 && !context.out.isData) context.out.note('Nothing of this has happened.');
      return;
    }
    await warnOfUnknown(context, scope, given);
    const stream = client.events({
      types,
      names,
      detail: true,
      lastEventId: since,
      onState: onStreamState(context),
    });
    for await (const event of stream) if (isWanted(event)) printEvent(context, scope, event);
  },
});
