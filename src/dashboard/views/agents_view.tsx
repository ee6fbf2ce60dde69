// A wall of agents: those that wait for a person first, each with the last lines of its screen.
import { useEffect, useRef } from 'preact/hooks';
import type { Agent } from '../../client/browser.ts';
import { StateLabel } from '../frame/status_mark.tsx';
import { agentState, urgencyOf } from '../state/agent_state.ts';
import { agents, services, usageOf } from '../state/daemon.ts';
import { compareNames, cpuText, memoryText, visibleLine } from '../state/format.ts';
import { linkTo } from '../state/place.ts';
import { searchWords } from '../state/sections.ts';
import { screenOf, watchScreen } from './agent_screens.ts';

function CardUsage({ name }: { name: string }) {
  const usage = usageOf(name).value;
  return <span class="soft number">{usage && `${cpuText(usage.cpu)} · ${memoryText(usage.rssMB)}`}</span>;
}

function Card({ agent }: { agent: Agent }) {
  const { name, active, agent_type: type, stack } = agent;
  const box = useRef<HTMLAnchorElement>(null);
  const state = agentState(agent);
  useEffect(
    () => (active && box.current ? watchScreen(name, box.current) : undefined),
    [name, active, state],
  );
  const screen = screenOf(name).value;
  return (
    <a class="agent-card" ref={box} href={linkTo('agents', name)} data-state={state} data-name={name}>
      <span class="card-head">
        <strong>{name}</strong>
        <StateLabel state={state} />
      </span>
      <span class="card-title soft">
        {[screen?.title && visibleLine(screen.title), type, stack].filter(Boolean).join(' · ') || ' '}
      </span>
      <span class="card-screen" aria-hidden="true">
        {active ? (screen?.lines ?? ['…']).map((line) => `${visibleLine(line)}\n`) : 'not running'}
      </span>
      <CardUsage name={name} />
    </a>
  );
}

/** The agents that the search wants, in the order of who waits. */
function wantedAgents(): readonly Agent[] {
  const words = searchWords.value;
  return agents.value
    .filter((agent) => {
      const text =
        `${agent.name} ${agent.stack ?? ''} ${agent.agent_type ?? ''} ${agentState(agent)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort(
      (one, other) =>
        urgencyOf(agentState(one)) - urgencyOf(agentState(other)) || compareNames(one.name, other.name),
    );
}

/** The view of all agents. */
export function AgentsView() {
  const shown = wantedAgents();
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Agents</h1>
      </header>
      {shown.length === 0 && services.value !== null && (
        <div class="empty">
          <p>No agents.</p>
          <p class="soft">
            <code>berth agent spinup bot --cmd claude</code> starts one in a terminal of its own.
          </p>
        </div>
      )}
      <div class="wall">
        {shown.map((agent) => (
          <Card key={agent.name} agent={agent} />
        ))}
      </div>
    </section>
  );
}
