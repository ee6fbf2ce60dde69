// The handlers of groups.
import type { groups } from '../../../api/groups.ts';
import { fail } from '../../../protocol/errors.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf, RequestContext } from '../handler.ts';
import { specFilter } from '../reach.ts';
import { answerSoon, presentEnd, presentStart, presentStatus } from './answer_soon.ts';
import { deadline, startMs, stopMs } from './service_lookup.ts';

function membersOf(app: AppContext, name: string): SpecRow[] {
  const members = app.views.members(name);
  if (members.length === 0) throw fail('unknown_group', `there is no group ${name}`);
  return members;
}

/** The answer to a call of a group: that of its members, or with 202 their present states. */
async function answerOf<A>(
  request: RequestContext<{ readonly wait: boolean | null }>,
  work: Promise<{ services: A[] }>,
  present: (app: AppContext, name: string) => A,
): Promise<{ name: string; services: A[] }> {
  const { app, key: name } = request;
  const names = app.views.members(name).map((spec) => spec.name);
  const presentAll = () => ({ services: names.map((one) => present(app, one)) });
  const { services } = await answerSoon(request, work, presentAll);
  return { name, services };
}

export const groupHandlers: HandlersOf<typeof groups> = {
  list: ({ views }, _key, _query, reach) => views.groups(specFilter(reach)),

  start: (request) => {
    const { app, key: name, query } = request;
    const times = membersOf(app, name).map((spec) => startMs(spec, query.timeout));
    const message = { name, timeoutMs: query.timeout };
    const start = app.ref('groups').ask('start', message, deadline(...times));
    return answerOf(request, start, presentStart);
  },

  sleep: (request) => {
    const { app, key: name } = request;
    const times = membersOf(app, name).map((spec) => stopMs(spec, null));
    const sleep = app.ref('groups').ask('sleepGroup', { name }, deadline(...times));
    return answerOf(request, sleep, presentStatus);
  },

  wake: (request) => {
    const { app, key: name, query } = request;
    const wanted = membersOf(app, name).flatMap((spec) => app.views.withDependencies(spec.name));
    const times = [...new Set(wanted)].map((spec) => startMs(spec, query.timeout));
    const message = { name, timeoutMs: query.timeout };
    const wake = app.ref('groups').ask('wakeGroup', message, deadline(...times));
    return answerOf(request, wake, presentStart);
  },

  stop: (request) => {
    const { app, key: name, query } = request;
    const times = membersOf(app, name).map((spec) => stopMs(spec, query.grace));
    const message = { name, graceMs: query.grace };
    const stop = app.ref('groups').ask('stop', message, deadline(...times));
    return answerOf(request, stop, presentEnd);
  },

  restart: (request) => {
    const { app, key: name, query } = request;
    const { grace, timeout } = query;
    const times = membersOf(app, name).map((spec) => stopMs(spec, grace) + startMs(spec, timeout));
    const message = { name, graceMs: grace, timeoutMs: timeout };
    const restart = app.ref('groups').ask('restart', message, deadline(...times));
    return answerOf(request, restart, presentStart);
  },
};
