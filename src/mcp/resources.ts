// What clients may read and follow by URI: the log of a service, and the screen of an agent.
// docs/reference.md "MCP resources".
import { delay } from '../client/api_call.ts';
import type { Client } from '../client/create_client.ts';
import { isBerthError } from '../client/errors.ts';
import type { StreamOptions } from '../client/event_stream.ts';
import { MCP } from '../settings/mcp_limits.ts';
import type { Workplace } from './tool.ts';

/** One kind of resource, as data. */
interface ResourceKind {
  /** As in RFC 6570. */
  readonly template: string;
  readonly pattern: RegExp;
  readonly title: string;
  readonly description: string;
  /** The names of the existing ones. */
  list(client: Client, signal: AbortSignal): Promise<string[]>;
  read(client: Client, name: string, signal: AbortSignal): Promise<string>;
  /** Yields an item each time the resource may have changed. Ends with the signal. */
  changes(client: Client, name: string, options: StreamOptions): AsyncIterable<unknown>;
}

/** The number of log lines that one read returns. */
const LOG_LINES = 200;

const KINDS: readonly ResourceKind[] = [
  {
    template: 'berth://services/{name}/logs',
    pattern: /^berth:\/\/services\/([^/?#]+)\/logs$/,
    title: 'Log of a service',
    description: `The last ${LOG_LINES} lines that it has printed`,
    list: async (client, signal) => (await client.services({ signal })).map(({ name }) => name),
    read: async (client, name, signal) =>
      (await client.logs(name, { lines: LOG_LINES, signal })).lines.join('\n'),
    changes: (client, name, options) => client.followLogGrowth(name, options),
  },
  {
    template: 'berth://agents/{name}/screen',
    pattern: /^berth:\/\/agents\/([^/?#]+)\/screen$/,
    title: 'Screen of an agent',
    description: 'What its terminal shows now',
    list: async (client, signal) =>
      (await client.agents({ signal })).filter(({ active }) => active).map(({ name }) => name),
    read: async (client, name, signal) => (await client.agentScreen(name, { signal })).lines.join('\n'),
    changes: (client, name, options) => client.followAgentLogGrowth(name, options),
  },
];

/** Minimum time between two change notifications of the same resource, in milliseconds. */
const NOTICE_INTERVAL_MS = 500;
/** Interval of the looks for a followed resource that does not exist. */
const MISSING_RETRY_MS = 2_000;

interface Resource {
  kind: ResourceKind;
  name: string;
}

const uriOf = ({ template }: ResourceKind, name: string): string =>
  template.replace('{name}', encodeURIComponent(name));

function resourceAt(uri: string): Resource | null {
  for (const kind of KINDS) {
    const name = kind.pattern.exec(uri)?.[1];
    if (name !== undefined && URL.canParse(uri)) return { kind, name: decodeURIComponent(name) };
  }
  return null;
}

/** The templates of all kinds. */
export const resourceTemplates = () =>
  KINDS.map(({ template, title, description }) => ({
    uriTemplate: template,
    name: title,
    title,
    description,
    mimeType: 'text/plain',
  }));

/** Every existing resource. */
export async function listResources({ client }: Workplace, signal: AbortSignal) {
  const all = await Promise.all(
    KINDS.map(async (kind) =>
      (await kind.list(client, signal)).map((name) => ({
        uri: uriOf(kind, name),
        name,
        title: `${kind.title}: ${name}`,
        description: kind.description,
        mimeType: 'text/plain',
      })),
    ),
  );
  return all.flat();
}

/** The text of a resource; null: the URI is unknown. Rejects with a BerthError. */
export async function readResource(
  { client }: Workplace,
  uri: string,
  signal: AbortSignal,
): Promise<string | null> {
  const found = resourceAt(uri);
  return found && (await found.kind.read(client, found.name, signal));
}

/**
 * Calls `onChange` each time a resource has changed, at most twice a second, until `signal` aborts. While
 * there is no such resource, it may still come. Resolves at once for an unknown URI.
 */
async function followResource(
  { client }: Workplace,
  uri: string,
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  const found = resourceAt(uri);
  if (!found) return;
  let timer: NodeJS.Timeout | undefined;
  let last = Number.NEGATIVE_INFINITY;
  const tell = (): void => {
    timer = undefined;
    last = performance.now();
    onChange();
  };
  const changed = (): void => {
    timer ??= setTimeout(tell, Math.max(0, last + NOTICE_INTERVAL_MS - performance.now()));
  };
  let wasMissing = false;
  const onState: StreamOptions['onState'] = ({ open }) => {
    if (open && wasMissing) changed();
    if (open) wasMissing = false;
  };
  try {
    while (!signal.aborted) {
      try {
        for await (const _ of found.kind.changes(client, found.name, { signal, onState })) changed();
      } catch (error) {
        if (!isBerthError(error) || error.status !== 404) throw error;
        wasMissing = true;
        await delay(MISSING_RETRY_MS, signal);
      }
    }
  } finally {
    if (signal.aborted) clearTimeout(timer);
  }
}

/** The URIs that a request listens to; null: it is another kind of request. */
export function listenedUris(body: unknown): string[] | null {
  const { method, params } = (body ?? {}) as { method?: unknown; params?: unknown };
  if (method !== 'subscriptions/listen') return null;
  const { notifications } = (params ?? {}) as { notifications?: unknown };
  const { resourceSubscriptions } = (notifications ?? {}) as { resourceSubscriptions?: unknown };
  const uris: unknown[] = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [];
  return uris.filter((uri) => typeof uri === 'string').slice(0, MCP.maxSubscriptions);
}

/** The resources that one client follows. */
export class FollowedResources {
  private readonly workplace: Workplace;
  private readonly onChange: (uri: string) => void;
  private readonly onError: (error: unknown) => void;
  /** By URI, with the number of subscriptions to it. */
  private readonly open = new Map<string, { count: number; ending: AbortController }>();

  constructor(workplace: Workplace, onChange: (uri: string) => void, onError: (error: unknown) => void) {
    this.workplace = workplace;
    this.onChange = onChange;
    this.onError = onError;
  }

  add(uri: string): void {
    const known = this.open.get(uri);
    if (known) {
      known.count += 1;
      return;
    }
    const ending = new AbortController();
    this.open.set(uri, { count: 1, ending });
    followResource(this.workplace, uri, ending.signal, () => this.onChange(uri)).catch((error: unknown) => {
      // A resource that the client may not read sends nothing.
      if (!isBerthError(error)) this.onError(error);
    });
  }

  remove(uri: string): void {
    const known = this.open.get(uri);
    if (!known) return;
    known.count -= 1;
    if (known.count > 0) return;
    known.ending.abort();
    this.open.delete(uri);
  }

  close(): void {
    for (const { ending } of this.open.values()) ending.abort();
    this.open.clear();
  }
}
