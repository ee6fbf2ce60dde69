// Logs as text, for the clipboard and as a file.
import type { LogEntry } from '../../client/browser.ts';
import { endText } from '../../presentation/format.ts';
import { perform } from '../state/actions.ts';
import { client } from '../state/session.ts';
import { plainLine } from './ansi_text.ts';
import type { LineSelection, LogFeed } from './log_feed.ts';

const PAGE_LINES = 1_000;
/** The most lines of a downloaded file. */
const MAX_FILE_LINES = 200_000;

function entryText(entry: LogEntry): string {
  const head = `${entry.at} ${entry.name}`;
  if ('text' in entry) return `${head} ${plainLine(entry.text)}`;
  return `${head} -- ${entry.event}${entry.event === 'started' ? ` pid ${entry.pid}` : ` ${endText(entry)}`} --`;
}

/** The lines that the feed has, as text. */
export const shownText = ({ chunks }: LogFeed): string =>
  chunks.flatMap(({ entries }) => entries.map(entryText)).join('\n');

async function allText(selection: LineSelection): Promise<string> {
  const pages: string[][] = [];
  let before: string | null = null;
  let lines = 0;
  do {
    const page = await client.searchLogs({ ...selection, limit: PAGE_LINES, before });
    pages.unshift(page.lines.map(entryText));
    lines += page.lines.length;
    before = page.before;
  } while (before !== null && lines < MAX_FILE_LINES);
  return `${pages.flat().join('\n')}\n`;
}

/** Saves all stored lines of the selection as a file. */
export async function downloadLog(selection: LineSelection): Promise<void> {
  const name = selection.names?.join('+').slice(0, 80) || selection.stack || 'logs';
  await perform(`download ${name}`, async () => {
    const url = URL.createObjectURL(new Blob([await allText(selection)], { type: 'text/plain' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${name}.log`;
    link.click();
    URL.revokeObjectURL(url);
  });
}
