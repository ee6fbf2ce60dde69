// The handlers of services: the ask, its deadline and the answer.
import type { services } from '../../../api/services.ts';
import { fail } from '../../../protocol/errors.ts';
import { HOOKS } from '../../../protocol/hooks.ts';
import type { StartReply } from '../../../protocol/service.ts';
import { isHookOf } from '../../../protocol/stacks.ts';
import { USAGE_RANGES } from '../../../protocol/stats.ts';
import { localTime } from '../../../protocol/timestamps.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';
import { specFilter } from '../reach.ts';
import { answerSoon, presentStart, presentStatus } from './answer_soon.ts';
import { readLogs, streamLogs } from './logs.ts';
import { deadline, findService, findStartable, serviceRef, startMs, stopMs } from './service_lookup.ts';

const registryOf = (app: AppContext) => app.ref('registry');

/**
 * Wakes a service and everything it depends on, each within `timeout` milliseconds; null: its own time limit.
 */
async function wakeService(app: AppContext, name: string, timeout: number | null): Promise<StartReply> {
  findStartable(app, name);
  const times = app.views.withDependencies(name).map((spec) => startMs(spec, timeout));
  return app.ref('groups').ask('wake', { name, timeoutMs: timeout }, deadline(...times));
}

export const serviceHandlers: HandlersOf<typeof services> = {
  list: ({ views }, _key, _query, reach) => views.services(specFilter(reach)),
  read: ({ views }, name) => views.detail(name),
  resolve: (app, name, query) => {
    if (!query?.wake) return app.views.resolve(name);
    return wakeService(app, name, query.timeout).then(() => app.views.resolve(name));
  },

  register: async ({ app, body }) => {
    await registryOf(app).ask('register', { input: body });
    const item = app.views.item(body.name);
    if (!item) throw fail('unknown_service', `the service ${body.name} was removed meanwhile`);
    return item;
  },

  remove: (request) => {
    const { app, key: name } = request;
    const spec = findService(app, name);
    const message = { name, agent: false, graceMs: null };
    const removal = registryOf(app).ask('remove', message, deadline(stopMs(spec, null)));
    const answer = removal.then(() => ({ removed: true, name }));
    return answerSoon(request, answer, () => ({ removed: false, name }));
  },

  start: (request) => {
    const { app, key: name, query } = request;
    const ifChanged = query.ifChanged ?? false;
    // `up` starts the hook create in this way, which leaves a completed one alone.
    const spec = findStartable(app, name, ifChanged ? HOOKS.create : undefined);
    const wait = query.wait ?? true;
    if (ifChanged && spec.kind !== 'task')
      throw fail('invalid_spec', `ifChanged is for tasks, and ${name} is a service`);
    if (!wait) request.status = 202;
    const message = {
      timeoutMs: query.timeout,
      wait,
      awake: query.awake ?? false,
      ...(ifChanged && { ifChanged }),
      ...((ifChanged || query.join) && { join: true }),
    };
    const limit = deadline(startMs(spec, query.timeout));
    return spec.stack !== null && isHookOf(spec.stack, name)
      ? app.ref('stacks').ask('create', { stack: spec.stack, request: message }, limit)
      : serviceRef(app, name).ask('start', message, limit);
  },

  stop: (request) => {
    const { app, key: name, query } = request;
    const spec = findService(app, name);
    const limit = deadline(stopMs(spec, query.grace));
    const stop = serviceRef(app, name).ask('stop', { graceMs: query.grace }, limit);
    return answerSoon(request, stop, () => presentStatus(app, name));
  },

  restart: (request) => {
    const { app, key: name, query } = request;
    const spec = findStartable(app, name);
    const message = { timeoutMs: query.timeout, graceMs: query.grace };
    const limit = deadline(startMs(spec, query.timeout), stopMs(spec, query.grace));
    const restart = serviceRef(app, name).ask('restart', message, limit);
    return answerSoon(request, restart, () => presentStart(app, name));
  },

  sleep: (request) => {
    const { app, key: name } = request;
    const spec = findService(app, name);
    const sleep = serviceRef(app, name).ask('sleep', {}, deadline(stopMs(spec, null)));
    return answerSoon(request, sleep, () => presentStatus(app, name));
  },

  wake: (request) => {
    const { app, key: name, query } = request;
    return answerSoon(request, wakeService(app, name, query.timeout), () => presentStart(app, name));
  },

  signal: ({ app, key: name, body }) => {
    findService(app, name);
    return serviceRef(app, name).ask('signal', body);
  },

  explain: async ({ app, key: name }) => {
    findService(app, name);
    const { lastCheck, backoff, exit, ...facts } = await serviceRef(app, name).ask('explain', {});
    return {
      status: facts.status,
      reason: facts.reason,
      waitingFor: facts.waitingFor,
      lastCheck: lastCheck && { ...lastCheck, at: localTime(lastCheck.at) },
      portHolder: facts.portHolder,
      backoff: backoff && { ...backoff, nextAt: localTime(backoff.nextAt) },
      exit: exit && { ...exit, at: localTime(exit.at) },
      watching: facts.watching,
      lastLines: facts.lastLines,
      next: facts.next,
    };
  },

  statsHistory: async ({ app, key: name, query }) => {
    findService(app, name);
    const range = query.range ?? 'hour';
    const { points } = await app.ref('stats').ask('history', { name, range });
    const shown = points.map(({ at, ...used }) => ({ at: localTime(at), ...used }));
    return { name, stepMs: USAGE_RANGES[range].stepMs, points: shown };
  },

  logs: ({ app, key: name, query }) => readLogs(app, findService(app, name), query),
  followLogs: (request) => {
    findService(request.app, request.key);
    return streamLogs(request);
  },
};
