// docs/reference.md "Watch": what the thread that watches files still knows when the other one has died.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { watcherActor } from '../../../src/actors/watcher/watcher.ts';
import type { WatchedServiceProtocol, WatcherProtocol } from '../../../src/protocol/watcher.ts';
import { realTime, tempDir, world } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

it('reports changes again if their first report was lost, and only those', async () => {
  const cwd = tempDir();
  mkdirSync(join(cwd, 'src'));
  const reports: string[][] = [];
  let walks = 0;
  const node = world({ clock: realTime });
  await node.stand<WatchedServiceProtocol>('service:web', {
    filesChanged: ({ paths }) => {
      reports.push(paths);
      return null;
    },
    watchState: () => {
      walks += 1;
      return null;
    },
    watchAgain: () => null,
  });
  await node.start('watcher', watcherActor, { requests: new Map() });
  const watcher = node.ref<WatcherProtocol>('watcher');
  const startedAt = realTime.now() - 10_000;
  const request = { service: 'web', cwd, paths: ['src'], ignore: [], debounceMs: 10, since: startedAt };
  await watcher.ask('watch', request);
  await eventually(() => walks === 1);
  writeFileSync(join(cwd, 'src', 'a.ts'), '');
  await eventually(() => reports.length === 1);
  // The service has restarted for it.
  await watcher.ask('watch', { ...request, since: realTime.now() + 1 });
  expect(walks).toBe(1);
  // Its thread has died with the report: it only knows that it runs since before that.
  await watcher.ask('watch', request);
  await eventually(() => reports.length === 2);
  expect(reports[1]).toEqual(['src/a.ts']);
});
