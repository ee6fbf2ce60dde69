// The logs of one, several or all services, merged by time.

import type { LineSelection } from '../logs/log_feed.ts';
import { LogPanel } from '../logs/log_view.tsx';
import { serviceList, stackList } from '../state/daemon.ts';
import { go, setFilter, shownPlace } from '../state/place.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
const SPANS = [
  ['', 'latest'],
  ['15m', 'last 15 minutes'],
  ['1h', 'last hour'],
  ['1d', 'last day'],
] as const;

/** The time to which the address jumps, in epoch milliseconds; null: none. */
function timeOf({ at = '' }: Readonly<Record<string, string>>): number | null {
  const time = Date.parse(at);
  return Number.isNaN(time) ? null : time;
}

/** A time as its field wants it, in the local time zone. */
const fieldTime = (time: number | null): string => {
  if (time === null) return '';
  const local = time - new Date(time).getTimezoneOffset() * 60_000;
  return new Date(local).toISOString().slice(0, 19);
};

/** The selection that the address specifies. */
function selectionOf(query: Readonly<Record<string, string>>): LineSelection {
  const { names = '', stack, q, regex, level, since } = query;
  const list = names.split(',').filter(Boolean);
  const wantedLevel = LEVELS.find((one) => one === level);
  const at = timeOf(query);
  const time = at === null ? since : new Date(at).toISOString();
  return {
    ...(list.length > 0 && { names: list }),
    ...(stack && { stack }),
    ...(q && (regex ? { regex: q } : { q })),
    ...(wantedLevel && { level: wantedLevel }),
    ...(query['stream'] === 'stderr' && { stream: 'stderr' as const }),
    ...(query['run'] && { run: 'last' }),
    ...(time && { since: time }),
  };
}

function Choice(props: { label: string; name: string; options: readonly (readonly [string, string])[] }) {
  const { label, name, options } = props;
  return (
    <select
      class="field"
      aria-label={label}
      value={shownPlace.value.query[name] ?? ''}
      onChange={(event) => setFilter(name, event.currentTarget.value)}
    >
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

function Chip({ name, text }: { name: string; text: string }) {
  const isOn = Boolean(shownPlace.value.query[name]);
  return (
    <button
      type="button"
      class="chip"
      aria-pressed={isOn}
      onClick={() => setFilter(name, isOn ? '' : 'stderr')}
    >
      {text}
    </button>
  );
}

/** The services whose lines are shown, each as a button that removes it, and a list to add one. */
function Names() {
  const list = (shownPlace.value.query['names'] ?? '').split(',').filter(Boolean);
  const others = (serviceList.value ?? []).filter(({ name }) => !list.includes(name));
  const setNames = (names: readonly string[]): void => setFilter('names', names.join(','));
  return (
    <>
      {list.map((name) => (
        <button
          type="button"
          key={name}
          class="chip"
          aria-pressed="true"
          aria-label={`leave out ${name}`}
          onClick={() => setNames(list.filter((one) => one !== name))}
        >
          {name} ×
        </button>
      ))}
      <select
        class="field"
        aria-label="add a service"
        value=""
        onChange={(event) => setNames([...list, event.currentTarget.value])}
      >
        <option value="">{list.length === 0 ? 'all services' : 'add …'}</option>
        {others.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </>
  );
}

/** The view of logs with its filters. */
export function LogsView() {
  const { query } = shownPlace.value;
  const selection = selectionOf(query);
  const time = timeOf(query);
  const line = time === null ? null : (query['line'] ?? null);
  const stackNames = stackList.value.map(({ name }) => [name, name] as const);
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Logs</h1>
        <div class="filters">
          <Names />
          {stackNames.length > 0 && (
            <Choice label="stack" name="stack" options={[['', 'all stacks'], ...stackNames]} />
          )}
          <Choice
            label="least level"
            name="level"
            options={[['', 'all levels'], ...LEVELS.map((level) => [level, `${level} and above`] as const)]}
          />
          <Choice label="since" name="since" options={SPANS} />
          <Chip name="stream" text="stderr" />
          <Chip name="run" text="last run" />
          <Chip name="regex" text="regex" />
          <input
            type="datetime-local"
            class="field"
            aria-label="jump to a time"
            step="1"
            value={fieldTime(time)}
            onChange={(event) => go({ query: { ...query, at: event.currentTarget.value, line: '' } }, true)}
          />
        </div>
      </header>
      <LogPanel selection={selection} time={time} line={line} onSearch={(text) => setFilter('q', text)} />
    </section>
  );
}
