// State: only the turns of requests under way. Rebuilt from: nothing; the registry has the agents.
//
// An agent is a service with a few defaults: docs/reference.md "Spinup". The registry leases its
// port in the same turn in which it checks the name and host name, so concurrent spinups cannot collide.
import { homedir } from 'node:os';
import { isOnPath } from '../../adapters/process/path_lookup.ts';
import { serviceAddress } from '../../protocol/address.ts';
import { agentKind } from '../../protocol/agent_types.ts';
import type { AgentsProtocol, SpinupInput } from '../../protocol/agents.ts';
import { fail } from '../../protocol/errors.ts';
import type { LedgerRun } from '../../protocol/host.ts';
import { AGENTS_GROUP, agentHostname } from '../../protocol/names.ts';
import type { PortProtocol } from '../../protocol/port_protocol.ts';
import { completeRegistration } from '../../protocol/registration.ts';
import { portOfAgent, type ServiceInput, type ServiceSpec } from '../../protocol/service.ts';
import { actor, type Context, type DeferredReply, isFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';

export interface AgentsConfig {
  /** The domain of the agents' host names. */
  domain: string;
}

type LaunchSpec = Pick<ServiceSpec, 'cmd' | 'ready' | 'stopSignal'>;
type EnvRows = readonly (readonly [key: string, value: string])[];

const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };

/** A coding agent works in its terminal: no page answers at its port. null: its command tells. */
const protocolOf = ({ agentType, ready }: SpinupInput): PortProtocol | null =>
  agentType !== null && ready === null && agentKind(agentType).coding !== null ? 'tcp' : null;

/** The command to run: the given one, or the default of the type. */
function launchSpecOf(input: SpinupInput, env: EnvRows, cwd: string): LaunchSpec {
  const { name, cmd, agentType, ready } = input;
  if (cmd !== null) return { cmd, ready, stopSignal: 'SIGTERM' };
  if (agentType === null) throw fail('invalid_spec', 'cmd must be given when agent_type is not');
  const kind = agentKind(agentType);
  const values = new Map([...(input.baseEnv ?? []), ...env]);
  if (kind.requiredVariable !== null && !values.get(kind.requiredVariable)) {
    const path = `env.${kind.requiredVariable}`;
    const message = `${path} must be given for agent_type ${agentType}`;
    throw fail('invalid_spec', message, { details: [{ path, message }] });
  }
  if (!isOnPath(kind.program, values.get('PATH') ?? process.env['PATH'] ?? '', cwd)) {
    const hint = `Install it: ${kind.install}`;
    throw fail('start_failed', `${name} cannot be started: the program ${kind.program} is not in PATH`, {
      hint,
    });
  }
  // The registry, which leases the port, replaces `$PORT`.
  const url = kind.readyPath === null ? null : `http://127.0.0.1:$PORT${kind.readyPath}`;
  return { cmd: kind.cmd, ready: ready ?? url, stopSignal: kind.stopSignal };
}

class Agents {
  private readonly context: Context;
  private readonly config: AgentsConfig;

  constructor(context: Context, config: AgentsConfig) {
    this.context = context;
    this.config = config;
  }

  spinup(input: SpinupInput): DeferredReply<{ name: string; port: number; pid: number }> {
    return this.context.turn(input.name, async () => {
      const { name } = input;
      const registered = await this.serviceInputOf(input);
      const { stored, created } = await this.registry().ask('register', { input: registered });
      try {
        const service = this.context.ref(serviceAddress(name));
        // A new agent may take over a process whose record was lost.
        const request = { timeoutMs: null, wait: false, force: true, join: created };
        const { pid } = await service.ask('start', request);
        if (pid === null) throw fail('start_failed', `${name} cannot be started: it has no process`);
        return { name, port: portOfAgent(stored.spec.port), pid };
      } catch (error) {
        if (created) await this.undoRegistration(name);
        throw error;
      }
    });
  }

  remove(name: string): DeferredReply<{ name: string; port: number }> {
    return this.context.turn(name, async () => {
      const removal = { name, agent: true, graceMs: null };
      const { port } = await this.registry().ask('remove', removal, DEADLINE);
      return { name, port: portOfAgent(port) };
    });
  }

  private async serviceInputOf(input: SpinupInput): Promise<ServiceInput> {
    const { name, agentType, env, cols, rows, sleep, stack } = input;
    const { isAsleep, spec: before } = await this.registry().ask('specOf', { name });
    if (before && !before.agent) throw fail('name_in_use', `${name} is a service already`);
    if (before) await this.refuseIfRunning(name);
    // A process whose record was lost keeps its port.
    const lost = before ? null : await this.runOf(name);
    if (isAsleep)
      throw fail('already_running', `${name} is asleep`, { hint: 'Wake it, or remove it first.' });
    const cwd = input.cwd ?? homedir();
    return completeRegistration({
      name,
      port: input.port ?? lost?.port ?? 0,
      ...launchSpecOf(input, env ?? before?.env ?? [], cwd),
      protocol: protocolOf(input),
      cwd,
      group: AGENTS_GROUP,
      env,
      agent: { agentType, hostname: agentHostname(name, this.config.domain), cols, rows },
      stack,
      sleep,
      ...(input.baseEnv === undefined ? {} : { baseEnv: input.baseEnv }),
    });
  }

  /** Its run that has not ended. */
  private async runOf(name: string): Promise<LedgerRun | null> {
    const { run } = await this.context.ref('host').ask('runOf', { service: name });
    return run && !run.end ? run : null;
  }

  private async refuseIfRunning(name: string): Promise<void> {
    const run = await this.runOf(name);
    if (!run) return;
    if (run.stopping) throw fail('daemon_busy', `${name} is being stopped`);
    throw fail('already_running', `${name} is running already`);
  }

  /**
   * Removes what a failed spinup registered, unless it has a process. Ignores a failure here, which would
   * hide the original one.
   */
  private async undoRegistration(name: string): Promise<void> {
    try {
      if (await this.runOf(name)) return;
      await this.registry().ask('remove', { name, agent: true, graceMs: 0 }, DEADLINE);
    } catch (error) {
      if (!isFailure(error)) throw error;
    }
  }

  private registry() {
    return this.context.ref('registry');
  }
}

/** Spins agents up and removes them: docs/reference.md "Spinup", "Removal of an agent". */
export const agentsActor = actor<AgentsProtocol, AgentsConfig>('agents', (context, config) => {
  const all = new Agents(context, config);
  return {
    spinup: ({ input }) => all.spinup(input),
    remove: ({ name }) => all.remove(name),
  };
});
