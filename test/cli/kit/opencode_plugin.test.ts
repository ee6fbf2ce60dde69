// The plugin that `berth agent init --opencode` writes, in a process of its own: docs/reference.md "Agent init".
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { setupPlan } from '../../../src/cli/kit/agent_setup.ts';
import { tempDir } from '../../kit/actors.ts';

/** Sends its events to the plugin, each in a turn of its own, and ends when nothing more is to be done. */
const DRIVER = `import { Berth } from './berth.mjs';
const { event } = await Berth({});
for (const one of JSON.parse(process.argv[2])) {
  await event({ event: one });
  await new Promise((resolve) => setTimeout(resolve, 20));
}
`;

const busy = (sessionID: string) => ({
  type: 'session.status',
  properties: { sessionID, status: { type: 'busy' } },
});
const other = (type: string) => ({ type, properties: { sessionID: 'of-it' } });

function pluginText(): string {
  const edits = setupPlan('opencode').map(({ edit }) => edit);
  const plugin = edits.find((edit) => edit.kind === 'whole');
  if (!plugin) throw new Error('no plugin');
  return plugin.text;
}

interface Conditions {
  /** What the fake `berth` does for `working`; null: there is no `berth`. */
  working: string | null;
  limitMs?: number;
  agent?: string;
  /** The process of the opencode in whose shell it runs. */
  outer?: string;
}

/** Resolves with the begins and ends of the reports that `events` have led to. */
async function reports(events: object[], { working, limitMs, agent = 'bot', outer }: Conditions) {
  const root = tempDir();
  const text = pluginText();
  writeFileSync(
    join(root, 'berth.mjs'),
    limitMs === undefined ? text : text.replace(/LIMIT_MS = \d+_000;/, `LIMIT_MS = ${limitMs};`),
  );
  writeFileSync(join(root, 'driver.mjs'), DRIVER);
  const log = join(root, 'log');
  const program = `#!/bin/sh
echo "begin $*" >> "${log}"
case "$3" in working) ${working} ;; esac
echo "end $3" >> "${log}"
`;
  if (working !== null) {
    writeFileSync(join(root, 'berth'), program);
    chmodSync(join(root, 'berth'), 0o755);
  }
  const env = {
    PATH: working === null ? root : `${root}:${process.env['PATH']}`,
    BERTH_AGENT: agent,
    ...(outer !== undefined && { BERTH_OPENCODE_PID: outer }),
  };
  await promisify(execFile)(process.execPath, [join(root, 'driver.mjs'), JSON.stringify(events)], { env });
  return existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : [];
}

it('reports one event after another, also if a report is slow, and leaves out what is superseded', async () => {
  const events = [
    busy('of-it'),
    ...['permission.asked', 'permission.replied', 'message.updated', 'session.idle'].map(other),
  ];
  expect(await reports(events, { working: 'sleep 1' })).toEqual([
    'begin agent hook working --session=of-it --type=opencode',
    'end working',
    'begin agent hook idle --session=of-it --type=opencode',
    'end idle',
  ]);
});

it('goes on after a report that fails or hangs, and where there is no berth', async () => {
  const events = [busy('of-it'), other('session.idle')];
  const began = [
    'begin agent hook working --session=of-it --type=opencode',
    'begin agent hook idle --session=of-it --type=opencode',
  ];
  expect(await reports(events, { working: 'exit 1' })).toEqual([...began, 'end idle']);
  expect(await reports(events, { working: 'exec sleep 600', limitMs: 300 })).toEqual([...began, 'end idle']);
  expect(await reports(events, { working: null })).toEqual([]);
});

it('reports of a subagent neither its end nor its session', async () => {
  const created = { type: 'session.created', properties: { info: { id: 'child', parentID: 'of-it' } } };
  const ended = { type: 'session.idle', properties: { sessionID: 'child' } };
  const asks = { type: 'permission.asked', properties: { sessionID: 'child' } };
  expect(await reports([created, busy('of-it'), ended], { working: ':' })).toEqual([
    'begin agent hook working --session=of-it --type=opencode',
    'end working',
  ]);
  expect(await reports([created, asks], { working: ':' })).toEqual([
    'begin agent hook blocked --session= --type=opencode',
    'end blocked',
  ]);
});

it('reports nothing outside of an agent', async () => {
  expect(await reports([busy('of-it')], { working: ':', agent: '' })).toEqual([]);
});

it('reports nothing in the shell of another opencode, which it tells its process by the environment', async () => {
  expect(await reports([busy('of-it')], { working: ':', outer: '1' })).toEqual([]);
  // What it starts has the process of the plugin.
  expect(await reports([busy('of-it')], { working: '[ "$BERTH_OPENCODE_PID" = $PPID ] || exit 1' })).toEqual([
    'begin agent hook working --session=of-it --type=opencode',
    'end working',
  ]);
});
