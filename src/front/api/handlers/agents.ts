// The handlers of agents.
import type { agents } from '../../../api/agents.ts';
import type { QueryOf } from '../../../api/operation.ts';
import { serviceAddress } from '../../../protocol/address.ts';
import type { AgentStatus } from '../../../protocol/agent_state.ts';
import { fail } from '../../../protocol/errors.ts';
import { agentHostname, gatewayUrlOf, localhostUrl } from '../../../protocol/names.ts';
import { portOfAgent, type ServiceStatus } from '../../../protocol/service.ts';
import { localTime } from '../../../protocol/timestamps.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import { SESSION } from '../../../settings/agent_limits.ts';
import type { Viewing } from '../../streams/terminal_viewer.ts';
import type { AppContext } from '../app_context.ts';
import type { Caller } from '../caller.ts';
import type { HandlersOf } from '../handler.ts';
import { specFilter } from '../reach.ts';
import { createShare, listShares, revokeShares } from './agent_shares.ts';
import { promptAgent, waitForAgents } from './agent_waits.ts';
import { answerSoon, presentStart, presentStatus } from './answer_soon.ts';
import { readLogs, streamLogs } from './logs.ts';
import { deadline, startMs, stopMs } from './service_lookup.ts';

/** The spec of an agent. Throws unknown_agent, also for a service that is not an agent. */
function findAgent(app: AppContext, name: string): SpecRow {
  const spec = app.views.spec(name);
  if (!spec?.agent) throw fail('unknown_agent', `there is no agent ${name}`);
  return spec;
}

/** The statuses of an agent that has no process yet, but is about to get one. */
const WITHOUT_PROCESS: readonly (ServiceStatus | undefined)[] = ['sleeping', 'starting'];

/**
 * Throws unknown_agent, and not_running for an agent without a process. A request that `wakes` it, or waits
 * for its start, needs none.
 */
function findRunning(app: AppContext, name: string, wakes = true): void {
  findAgent(app, name);
  const state = app.views.state(name);
  if (state?.process || (wakes && WITHOUT_PROCESS.includes(state?.status))) return;
  if (state?.status !== 'sleeping') throw fail('not_running', `the agent ${name} does not run`);
  throw fail('not_running', `the agent ${name} is asleep`, { hint: 'Wake it, or attach as no observer.' });
}

/** How `caller` may view a terminal. Throws forbidden_token, and invalid_spec. */
function viewingOf(caller: Caller, { mode, takeover }: QueryOf<typeof agents.attach>): Viewing {
  if (takeover && mode !== 'write') {
    const message = 'takeover must come with mode=write';
    throw fail('invalid_spec', message, { details: [{ path: 'takeover', message }] });
  }
  if (caller.kind !== 'share') return { mode: mode ?? 'shared', takesOver: takeover === true, share: null };
  if (mode === 'write') throw fail('forbidden_token', 'this token can only watch the terminal');
  return { mode: 'observe', takesOver: false, share: caller.share.id };
}

const toldState = ({ name, state, since, reason }: AgentStatus) => ({
  ...{ name, state, stateSince: since === 0 ? null : localTime(since) },
  stateReason: reason,
});

const terminalOf = (app: AppContext, name: string) => app.ref(serviceAddress(name));

const agentsOf = (app: AppContext) => app.ref('agents');

export const agentHandlers: HandlersOf<typeof agents> = {
  list: ({ views }, _key, _query, reach) => views.agents(specFilter(reach)),

  read: ({ views }, name) => views.agent(name),

  spinup: async ({ app, body }) => {
    const { name, port, pid } = await agentsOf(app).ask('spinup', { input: body });
    const { agentDomain, gatewayPort } = app.daemonInfo;
    const hostname = agentHostname(name, agentDomain);
    return {
      port,
      name,
      active: true,
      hostname,
      pid,
      url: localhostUrl(port),
      gatewayUrl: gatewayPort === null ? null : gatewayUrlOf(hostname, gatewayPort),
      agent_type: body.agentType,
    };
  },

  remove: (request) => {
    const { app, key: name } = request;
    const spec = findAgent(app, name);
    const removal = agentsOf(app).ask('remove', { name }, deadline(stopMs(spec, null)));
    const answer = removal.then(({ port }) => ({ removed: true, name, port }));
    return answerSoon(request, answer, () => ({ removed: false, name, port: portOfAgent(spec.port) }));
  },

  sleep: (request) => {
    const { app, key: name, query } = request;
    const spec = findAgent(app, name);
    const limit = deadline(stopMs(spec, null), SESSION.searchMs);
    const sleep = terminalOf(app, name).ask('sleep', { force: query.force ?? false }, limit);
    return answerSoon(request, sleep, () => presentStatus(app, name));
  },

  wake: (request) => {
    const { app, key: name, query } = request;
    const { force, timeout } = query;
    const spec = findAgent(app, name);
    const wanted = { timeoutMs: timeout, wait: true, join: true, wake: true, force: force ?? false };
    const limit = deadline(startMs(spec, timeout), SESSION.searchMs);
    const wake = terminalOf(app, name).ask('start', wanted, limit);
    return answerSoon(request, wake, () => presentStart(app, name));
  },

  logs: ({ app, key: name, query }) => readLogs(app, findAgent(app, name), query),
  followLogs: (request) => {
    findAgent(request.app, request.key);
    return streamLogs(request);
  },

  explain: async ({ app, key: name }) => {
    findAgent(app, name);
    const { status, authorities, drawnAt } = await terminalOf(app, name).ask('agentExplanation', {});
    return {
      ...toldState(status),
      question: status.question,
      drawnAt: drawnAt === null ? null : localTime(drawnAt),
      authorities: authorities.map(({ at, ...view }) => ({
        ...view,
        at: at === null ? null : localTime(at),
      })),
    };
  },

  reportState: async ({ app, key: name, body }) => {
    findRunning(app, name);
    return toldState(await terminalOf(app, name).ask('reportState', body));
  },

  screen: async ({ app, key: name, query: { format } }) => {
    findRunning(app, name);
    return { name, ...(await terminalOf(app, name).ask('screen', { ansi: format === 'ansi' })) };
  },

  keys: async ({ app, key: name, body }) => {
    findRunning(app, name);
    const terminal = terminalOf(app, name);
    app.terminals.sendTyped(terminal);
    return { name, ...(await terminal.ask('type', body)) };
  },

  wait: async (request) => {
    const { app, key: name } = request;
    findAgent(app, name);
    const [standing] = await waitForAgents(app, [name], 'any', request);
    if (!standing) throw new Error('a wait for one agent ends without one');
    return standing;
  },
  waitForAll: async (request) => {
    const { app, query, reach } = request;
    if (reach) for (const name of query.names ?? []) reach.assertName(name);
    const isSeen = specFilter(reach);
    const known = app.views
      .specs()
      .filter((spec) => spec.agent && (!isSeen || isSeen(spec)))
      .map(({ name }) => name);
    const names = [...new Set(query.names ?? known)];
    if (names.length === 0) throw fail('unknown_agent', 'there are no agents');
    return { agents: await waitForAgents(app, names, query.mode ?? 'any', request) };
  },
  prompt: ({ app, key: name, body, onGone }) => {
    findRunning(app, name);
    return promptAgent(app, name, body, onGone);
  },

  // The views know whether there is a terminal, so no actor needs to be asked.
  attach: ({ app, key: name, query, caller }) => {
    const viewing = viewingOf(caller, query);
    findRunning(app, name, viewing.mode !== 'observe');
    app.terminals.assertRoom(terminalOf(app, name), viewing);
    return (socket) => app.terminals.open(socket, terminalOf(app, name), viewing);
  },

  share: ({ app, key: name, body: { minutes } }) => {
    findAgent(app, name);
    return createShare(app, name, minutes);
  },
  shares: ({ app, key: name }) => {
    findAgent(app, name);
    return listShares(app, name);
  },
  endShares: ({ app, key: name, query: { id } }) => {
    findAgent(app, name);
    return revokeShares(app, name, id);
  },
};
