// The recorded screens of a type of agent, in one text file: each has a line that says what the agent was
// doing, and then what its terminal showed.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportedState } from '../../src/protocol/agent_state.ts';

export interface RecordedScreen {
  /** What the agent was doing. */
  state: ReportedState;
  /** How it came to be so. */
  situation: string;
  cols: number;
  rows: number;
  title: string;
  /** Without the blank ones at the end. */
  lines: string[];
}

const HEAD = /^=== (working|blocked|idle) \| (.*) \| (\d+)x(\d+) \| (.*)$/;
const fileOf = (type: string): string => join(import.meta.dirname, `${type}.txt`);

/** The recorded screens of `type`. */
export function readScreens(type: string): RecordedScreen[] {
  const screens: RecordedScreen[] = [];
  for (const line of readFileSync(fileOf(type), 'utf8').split('\n')) {
    const [, state, situation = '', cols, rows, title = ''] = HEAD.exec(line) ?? [];
    if (state === undefined) screens.at(-1)?.lines.push(line);
    else
      screens.push({
        state: state as ReportedState,
        ...{ situation, cols: Number(cols), rows: Number(rows), title, lines: [] },
      });
  }
  // Between two screens there is an empty line.
  for (const { lines } of screens) lines.pop();
  return screens;
}

/** Replaces the recorded screens of `type`. */
export function writeScreens(type: string, screens: readonly RecordedScreen[]): void {
  const text = screens.map(
    ({ state, situation, cols, rows, title, lines }) =>
      `=== ${state} | ${situation} | ${cols}x${rows} | ${title}\n${lines.map((line) => `${line}\n`).join('')}\n`,
  );
  writeFileSync(fileOf(type), text.join(''));
}
