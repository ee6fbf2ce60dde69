// A thread's file is found from the source and from every place in the build that needs it.
import { expect, it } from 'vitest';
import { dashboardUrl, entryUrl, nativeUrl } from '../../src/settings/build_paths.ts';

it.each([
  ['file:///app/src/daemon/thread_supervisor.ts', 'file:///app/workers/cloud.ts'],
  ['file:///app/dist/daemon.cjs', 'file:///app/dist/workers/cloud.cjs'],
  ['file:///app/dist/workers/services.cjs', 'file:///app/dist/workers/cloud.cjs'],
  ['file:///srv/workers/berth/daemon.cjs', 'file:///srv/workers/berth/workers/cloud.cjs'],
  ['file:///srv/a%20b/dist/daemon.cjs', 'file:///srv/a%20b/dist/workers/cloud.cjs'],
])('the entry of a thread is found from %s', (here, found) => {
  expect(entryUrl('cloud', here).href).toBe(found);
});

it.each([
  ['file:///app/src/daemon/build_paths.ts', 'file:///app/dist/dashboard/'],
  ['file:///app/dist/daemon.cjs', 'file:///app/dist/dashboard/'],
])('the page is found from %s', (here, found) => {
  expect(dashboardUrl(here).href).toBe(found);
});

it.each([
  ['file:///app/src/settings/build_paths.ts', 'file:///app/node_modules/uWebSockets.js/uws.node'],
  ['file:///app/dist/daemon.cjs', 'file:///app/dist/natives/uws.node'],
  ['file:///app/dist/chunks/front-ABC.js', 'file:///app/dist/natives/uws.node'],
])('the binary of uWebSockets.js is found from %s', (here, found) => {
  expect(nativeUrl('uws.node', here).href).toBe(found);
});
