// What the page shows, kept in the fragment of the address: reload and back work, and no server sees it.
import { computed, signal } from '@preact/signals';
import { wordsOfSearch } from '../../presentation/sections.ts';

/** The views of the page, in the order of its navigation. */
export const VIEWS = ['services', 'agents', 'logs', 'events', 'cloud'] as const;
export type ViewName = (typeof VIEWS)[number];

/** A pane below the view: the log of a service, or the terminal of an agent. */
export interface Pane {
  kind: 'log' | 'terminal';
  name: string;
}

/** What is shown. */
export interface Place {
  view: ViewName;
  /** The selected service or agent, or the id of the selected workload; null: none. */
  name: string | null;
  /** Filters of the view. */
  query: Readonly<Record<string, string>>;
  panes: readonly Pane[];
}

const MAX_PANES = 3;
const PANE = /^(log|terminal)\.(.+)$/;
const isView = (text: string | undefined): text is ViewName => VIEWS.some((view) => view === text);

function parsePanes(text: string): Pane[] {
  const panes = text.split('~').flatMap((part): Pane[] => {
    const [, kind, name] = PANE.exec(part) ?? [];
    return name !== undefined && (kind === 'log' || kind === 'terminal') ? [{ kind, name }] : [];
  });
  return panes.slice(0, MAX_PANES);
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** The place that the fragment `hash` names; without a known view, the services. */
function parsePlace(hash: string): Place {
  const [path = '', search = ''] = hash.replace(/^#/, '').split('?', 2);
  const [, view, name = ''] = path.split('/');
  const { panes = '', ...query } = Object.fromEntries(new URLSearchParams(search));
  const isKnown = isView(view);
  return {
    view: isKnown ? view : 'services',
    name: isKnown && name !== '' ? decoded(name) : null,
    query,
    panes: parsePanes(panes),
  };
}

/** The fragment of a place. */
function placeHash({ view, name, query, panes }: Place): string {
  const shown = panes.map(({ kind, name: of }) => `${kind}.${of}`).join('~');
  const given = Object.entries({ ...query, panes: shown }).filter(([, value]) => value !== '');
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : '';
  return `#/${view}${name === null ? '' : `/${encodeURIComponent(name)}`}${search}`;
}

/** The place that the page shows. */
export const shownPlace = signal<Place>(parsePlace(location.hash));
/** The agent that was clicked in the list: its terminal takes the keyboard when it is shown. null: none. */
export const clickedAgent = signal<string | null>(null);
/** The words of the search of the list. */
export const searchWords = computed(() => wordsOfSearch(shownPlace.value.query['find'] ?? ''));
/** Only the panes, which stay when the view changes. */
export const panes = computed(() => shownPlace.value.panes);

/** How many logs the page shows at most. Each has a stream, which takes a connection. */
export const logCount = computed(() => {
  const { view, panes: shown } = shownPlace.value;
  return Math.max(1, shown.length) + (view === 'logs' ? 1 : 0);
});

/** The fragment for a view, or for an item in it, with the current panes. */
export const linkTo = (view: ViewName, name: string | null = null, query: Place['query'] = {}): string =>
  placeHash({ view, name, query, panes: panes.value });

/** The search of the list, for the address of another selection. */
export function keptSearch(): Place['query'] {
  const { find } = shownPlace.value.query;
  return find === undefined ? {} : { find };
}

/** Shows another place. With `replace`, it replaces the current entry in the browser's history. */
export function go(change: Partial<Place>, replace = false): void {
  const next = { ...shownPlace.peek(), ...change };
  const hash = placeHash(next);
  if (hash === placeHash(shownPlace.peek())) return;
  if (replace) history.replaceState(null, '', hash);
  else history.pushState(null, '', hash);
  shownPlace.value = next;
}

/** Changes one filter of the view; an empty text removes it. */
export function setFilter(key: string, value: string): void {
  const { query } = shownPlace.peek();
  if ((query[key] ?? '') !== value) go({ query: { ...query, [key]: value } }, true);
}

/** Opens a pane in place of the last one, or with `beside` as an additional one. */
export function openPane(pane: Pane, beside = false): void {
  const rest = panes.peek().filter(({ kind, name }) => kind !== pane.kind || name !== pane.name);
  const isOpen = rest.length < panes.peek().length;
  if (isOpen) return;
  const kept = beside ? rest.slice(-(MAX_PANES - 1)) : rest.slice(0, -1);
  go({ panes: [...kept, pane] });
}

/** Closes a pane. */
export function closePane(pane: Pane): void {
  go({ panes: panes.peek().filter((one) => one !== pane) });
}

addEventListener('popstate', () => {
  shownPlace.value = parsePlace(location.hash);
});
