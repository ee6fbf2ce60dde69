// The handlers of groups.
import type { groups } from '../../../api/groups.ts';
import { fail } from '../../../protocol/errors.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';
import { specFilter } from '../reach.ts';
import { deadline, startMs, stopMs } from './service_lookup.ts';

function membersOf(app: AppContext, name: string): SpecRow[] {
  const members = app.views.members(name);
  if (members.length === 0) throw fail('unknown_group', `there is no group ${name}`);
  return members;
}

export const groupHandlers: HandlersOf<typeof groups> = {
  list: ({ views }, _key, _query, reach) => views.groups(specFilter(reach)),

  start: async ({ app, key: name, query }) => {
    const times = membersOf(app, name).map((spec) => startMs(spec, query.timeout));
    const message = { name, timeoutMs: query.timeout };
    const { services } = await app.ref('groups').ask('start', message, deadline(...times));
    return { name, services };
  },

  sleep: async ({ app, key: name }) => {
    const times = membersOf(app, name).map((spec) => stopMs(spec, null));
    const { services } = await app.ref('groups').ask('sleepGroup', { name }, deadline(...times));
    return { name, services };
  },

  wake: async ({ app, key: name, query }) => {
    const wanted = membersOf(app, name).flatMap((spec) => app.views.withDependencies(spec.name));
    const times = [...new Set(wanted)].map((spec) => startMs(spec, query.timeout));
    const message = { name, timeoutMs: query.timeout };
    const { services } = await app.ref('groups').ask('wakeGroup', message, deadline(...times));
    return { name, services };
  },

  stop: async ({ app, key: name, query }) => {
    const times = membersOf(app, name).map((spec) => stopMs(spec, query.grace));
    const message = { name, graceMs: query.grace };
    const { services } = await app.ref('groups').ask('stop', message, deadline(...times));
    return { name, services };
  },

  restart: async ({ app, key: name, query: { grace, timeout } }) => {
    const times = membersOf(app, name).map((spec) => stopMs(spec, grace) + startMs(spec, timeout));
    const message = { name, graceMs: grace, timeoutMs: timeout };
    const { services } = await app.ref('groups').ask('restart', message, deadline(...times));
    return { name, services };
  },
};
