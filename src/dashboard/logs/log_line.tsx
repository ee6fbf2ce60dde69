// One line of a log, or the mark for the start or end of a run.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { LogEntry, LogRunEvent, LogTextLine } from '../../client/browser.ts';
import { clockText, dayText, endText, visibleLine } from '../../presentation/format.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import { Icon } from '../frame/icon.tsx';
import { type StyledText, styledLine } from './ansi_text.ts';

/** How lines are shown. */
export interface LineLook {
  /** Whether lines of several services are mixed. */
  hasNames: boolean;
  /** The search text in lower case; '': none. */
  wanted: string;
  /** The fragment of the address that shows all lines around one, whose time and key follow it. */
  aroundHash: string;
  /** The time to which the log jumps, in epoch milliseconds: its lines stand out. null: none. */
  time: number | null;
  /** The key of the line of that time to which it jumps: only this one stands out. null: none. */
  line: string | null;
}

const isFound = (line: LogTextLine, look: LineLook): boolean =>
  look.line === null ? look.time === Date.parse(line.at) : look.line === entryKey(line);

const hashAround = (line: LogTextLine, { aroundHash }: LineLook): string =>
  `${aroundHash}${encodeURIComponent(line.at)}&line=${encodeURIComponent(entryKey(line))}`;

/** The text with every match of the search marked. */
function marked(text: string, wanted: string): ComponentChildren {
  if (wanted === '') return text;
  const lower = text.toLowerCase();
  const parts: ComponentChildren[] = [];
  let from = 0;
  // Marks nothing if a letter is longer in lower case, because it would shift the positions.
  for (
    let at = lower.indexOf(wanted);
    at >= 0 && lower.length === text.length;
    at = lower.indexOf(wanted, from)
  ) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}

const pieceOf = ({ text, classes, colour }: StyledText, wanted: string) => {
  const shown = marked(text, wanted);
  if (classes === '' && colour === '') return shown;
  return (
    <span class={classes} style={colour === '' ? undefined : { color: colour }}>
      {shown}
    </span>
  );
};

const MESSAGE_KEYS = ['msg', 'message', 'event'];
/** Fields that the columns of the line already show. */
const TOLD = new Set([
  'level',
  'severity',
  'lvl',
  'levelname',
  'time',
  'timestamp',
  'ts',
  '@timestamp',
  'pid',
  'hostname',
  'v',
]);

const fieldText = (value: unknown): string =>
  visibleLine(typeof value === 'string' ? value : JSON.stringify(value));

/** A line of JSON: its message, then its other fields. */
function JsonText({ fields, wanted }: { fields: Record<string, unknown>; wanted: string }) {
  const key = MESSAGE_KEYS.find((one) => typeof fields[one] === 'string');
  const rest = Object.entries(fields).filter(([name]) => name !== key && !TOLD.has(name));
  return (
    <>
      {key !== undefined && marked(fieldText(fields[key]), wanted)}
      {rest.map(([name, value]) => (
        <span key={name} class="log-field">
          {' '}
          <span class="soft">{visibleLine(name)}=</span>
          {marked(fieldText(value), wanted)}
        </span>
      ))}
    </>
  );
}

function TextLine({ line, look }: { line: LogTextLine; look: LineLook }) {
  const [isOut, setOut] = useState(false);
  const { fields, level, stream, name, at } = line;
  return (
    <div
      class="log-line"
      data-level={level ?? undefined}
      data-stream={stream}
      data-found={isFound(line, look) || undefined}
    >
      <a
        class="log-time"
        href={hashAround(line, look)}
        title={`${dayText(at)} ${at.slice(11, 23)}: show what is around it`}
      >
        {clockText(at)}
      </a>
      {look.hasNames && <span class="log-name">{name}</span>}
      <span class="log-level">{level === null ? (stream === 'stderr' ? 'err' : '') : level}</span>
      <span class="log-text">
        {fields && (
          <button
            type="button"
            class="fold"
            aria-expanded={isOut}
            aria-label="fields"
            onClick={() => setOut(!isOut)}
          >
            <Icon name="chevron" />
          </button>
        )}
        {fields ? (
          <JsonText fields={fields} wanted={look.wanted} />
        ) : (
          styledLine(line.text).map((piece) => pieceOf(piece, look.wanted))
        )}
        {isOut && (
          <pre class="json">
            {JSON.stringify(fields, null, 2)
              .split('\n')
              .map((row) => `${visibleLine(row)}\n`)}
          </pre>
        )}
      </span>
    </div>
  );
}

function RunMark({ mark, look }: { mark: LogRunEvent; look: LineLook }) {
  const { event, pid, at, name } = mark;
  const what =
    event === 'started' ? `started${pid === null ? '' : `, pid ${pid}`}` : `ended ${endText(mark)}`;
  return (
    <div class="log-run">
      <time dateTime={at}>{clockText(at)}</time>
      {look.hasNames && <span class="log-name">{name}</span>}
      <span>{what}</span>
    </div>
  );
}

/** A line, or the start or the end of a run. */
export const LogRow = ({ entry, look }: { entry: LogEntry; look: LineLook }) =>
  'text' in entry ? <TextLine line={entry} look={look} /> : <RunMark mark={entry} look={look} />;
