// berth k8s events, history
import type { Client } from '../../client/create_client.ts';
import type { CloudEvent } from '../../client/records.ts';
import { cloudEventParts, cloudEventTarget, isAlert } from '../../presentation/cloud_event_text.ts';
import { clockText, dayText, whenText } from '../../presentation/format.ts';
import { CLOUD_EVENT_TYPES, type CloudEventType } from '../../protocol/cloud_events.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import { defineCommand, flagOption, integerOption, listOption, textOption } from '../kit/command.ts';
import { type CommandContext, onStreamState } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { findCluster, findWorkload } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';
import { safeJson, sanitizeLine } from '../kit/sanitize.ts';

const OPERATION_TYPES = CLOUD_EVENT_TYPES.filter((type) => type.startsWith('operation.'));
const NOTHING = 'Nothing of this has happened.';
const TYPE_WIDTH = Math.max(...CLOUD_EVENT_TYPES.map((type) => type.length));

const selectionOptions = {
  type: listOption(
    '--type <types>',
    'only these types, such as conflict or workload.asleep',
    CLOUD_EVENT_TYPES,
  ),
  cluster: textOption('--cluster <cluster>', 'only events of this cluster', 'cluster'),
  namespace: listOption('-n, --namespace <names>', 'only events of these namespaces'),
  who: textOption('--who <who>', 'only what this one did: token, agent:<name> or berth'),
  since: textOption('--since <time>', 'not before this time: RFC 3339, or back from now such as 15m'),
  limit: integerOption(
    '--limit <count>',
    `how many of the newest; default ${CLOUD_EVENTS.defaultPage}`,
    [1, 100_000],
  ),
};
const workloadArgument = {
  syntax: '[workload]',
  about: 'only events of this workload: its name, namespace/name, kind/name or id',
  completes: 'workload',
} as const;

interface Given {
  cluster: string | undefined;
  namespace: readonly string[];
  who: string | undefined;
}

/** The event types that `given` names, in full or by one part such as `asleep`. Throws a UsageError. */
function typesOf(given: readonly string[]): CloudEventType[] {
  return given.flatMap((word) => {
    const found = CLOUD_EVENT_TYPES.filter((type) => type === word || type.split('.').includes(word));
    if (found.length > 0) return found;
    throw new UsageError(`${word} is no type of event`, `There are ${CLOUD_EVENT_TYPES.join(', ')}.`);
  });
}

async function selectionOf(client: Client, [name]: readonly string[], { cluster, namespace, who }: Given) {
  const at = cluster === undefined ? undefined : await findCluster(client, cluster);
  const one = name === undefined ? undefined : await findWorkload(client, name, cluster);
  return { cluster: at?.id, namespaces: namespace, workload: one?.id, who };
}

type HistoryOptions = Parameters<Client['cloud']['historyPages']>[0];

/** The newest `count` events, oldest first. */
async function newest(client: Client, options: HistoryOptions, count: number): Promise<CloudEvent[]> {
  const found: CloudEvent[] = [];
  const limit = Math.min(count, CLOUD_EVENTS.maxPage);
  for await (const page of client.cloud.historyPages({ ...options, limit })) {
    found.push(...page);
    if (found.length >= count) break;
  }
  return found.slice(0, count).reverse();
}

function printCloudEvent({ out }: CommandContext, event: CloudEvent): void {
  if (out.isData) {
    out.line(safeJson(event));
    return;
  }
  const { at, type } = event;
  const padded = type.padEnd(TYPE_WIDTH);
  const title = isAlert(type) ? out.style('red', padded) : padded;
  const time = out.style('dim', whenText(at, Date.now()));
  const parts = [cloudEventTarget(event), ...cloudEventParts(event)].filter(Boolean);
  out.line(`${time}  ${title}  ${sanitizeLine(parts.join('  '))}`);
}

export const cloudEventsCommand = defineCommand({
  about:
    'Prints what has happened in the clusters: sleeps, wakes, conflicts, clusters that cannot be reached. ' +
    '--json prints one object a line.',
  args: [workloadArgument],
  options: { follow: flagOption('-f, --follow', 'print new events until Ctrl-C'), ...selectionOptions },
  examples: [
    ['berth k8s events -f', 'everything from now on'],
    ['berth k8s events shop/db --since 1d', 'the last day of a workload'],
  ],
  run: async (context, names, { follow, type, since, limit, ...given }) => {
    const client = await context.client();
    const types = type.length > 0 ? typesOf(type) : undefined;
    const selection = { ...(await selectionOf(client, names, given)), types };
    const [last] = await newest(client, {}, 1);
    const past =
      since === undefined && limit === undefined && follow ? 0 : (limit ?? CLOUD_EVENTS.defaultPage);
    const events = past === 0 ? [] : await newest(client, { ...selection, since }, past);
    for (const event of events) printCloudEvent(context, event);
    if (!follow && events.length === 0 && !context.out.isData) context.out.note(NOTHING);
    if (!follow) return;
    // Events during the read of the history are in both the history and the stream.
    const printedTo = events.at(-1)?.id ?? 0;
    const stream = client.cloud.events({
      ...selection,
      after: last?.id ?? 0,
      onState: onStreamState(context),
    });
    for await (const event of stream) {
      if (event.type === 'stream.reset') context.out.note(`events before ${event.oldest} are no longer kept`);
      else if (event.id > printedTo) printCloudEvent(context, event);
    }
  },
});

const HISTORY_COLUMNS: readonly Column<CloudEvent>[] = [
  { title: 'TIME', cell: ({ at }) => `${dayText(at)} ${clockText(at)}` },
  { title: 'WHO', cell: ({ who }) => who },
  { title: 'FROM', cell: ({ from }) => from, wideOnly: true },
  { title: 'ACTION', cell: ({ action }) => action },
  { title: 'TARGET', cell: cloudEventTarget, canShrink: true },
  {
    title: 'RESULT',
    cell: ({ result }) => result,
    style: ({ result }) => (result === 'ok' ? 'green' : 'red'),
  },
  { title: 'REASON', cell: ({ reason }) => reason, canShrink: true },
  { title: 'OPERATION', cell: ({ operation_id }) => operation_id, wideOnly: true },
];

export const cloudHistoryCommand = defineCommand({
  about: 'Prints the audit log: who has asked for which change, from where, and how it ended.',
  args: [workloadArgument],
  options: selectionOptions,
  examples: [
    ['berth k8s history --who agent:claude --since 1d', 'what commands within an agent have changed'],
  ],
  run: async (context, names, { type, since, limit, ...given }) => {
    const client = await context.client();
    const types = type.length > 0 ? typesOf(type) : OPERATION_TYPES;
    const options = { ...(await selectionOf(client, names, given)), types, since };
    const events = await newest(client, options, limit ?? CLOUD_EVENTS.defaultPage);
    context.out.rows(events, HISTORY_COLUMNS, NOTHING);
  },
});
