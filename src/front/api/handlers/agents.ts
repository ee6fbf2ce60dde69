// The handlers of agents.
import type { agents } from '../../../api/agents.ts';
import { serviceAddress } from '../../../protocol/address.ts';
import { fail } from '../../../protocol/errors.ts';
import { agentHostname, gatewayUrlOf, localhostUrl } from '../../../protocol/names.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';
import { readLogs, streamLogs } from './logs.ts';
import { deadline, stopMs } from './service_lookup.ts';

/** The spec of an agent. Throws unknown_agent, also for a service that is not an agent. */
function findAgent(app: AppContext, name: string): SpecRow {
  const spec = app.views.spec(name);
  if (!spec?.agent) throw fail('unknown_agent', `there is no agent ${name}`);
  return spec;
}

/** Throws unknown_agent, and not_running for an agent without a process. */
function findRunning(app: AppContext, name: string): void {
  findAgent(app, name);
  if (!app.views.state(name)?.process) throw fail('not_running', `the agent ${name} does not run`);
}

const terminalOf = (app: AppContext, name: string) => app.ref(serviceAddress(name));

const agentsOf = (app: AppContext) => app.ref('agents');

export const agentHandlers: HandlersOf<typeof agents> = {
  list: ({ views }) => views.agents(),

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

  remove: async ({ app, key: name }) => {
    const spec = findAgent(app, name);
    const { port } = await agentsOf(app).ask('remove', { name }, deadline(stopMs(spec, null)));
    return { removed: true, name, port };
  },

  logs: ({ app, key: name, query }) => readLogs(app, findAgent(app, name), query),
  followLogs: (request) => {
    findAgent(request.app, request.key);
    return streamLogs(request);
  },

  screen: async ({ app, key: name, query: { format } }) => {
    findRunning(app, name);
    return { name, ...(await terminalOf(app, name).ask('screen', { ansi: format === 'ansi' })) };
  },

  keys: async ({ app, key: name, body }) => {
    findRunning(app, name);
    return { name, ...(await terminalOf(app, name).ask('type', body)) };
  },

  // The views know whether there is a terminal: no actor need be asked.
  attach: ({ app, key: name }) => {
    findRunning(app, name);
    return (socket) => app.terminals.open(socket, terminalOf(app, name));
  },
};
