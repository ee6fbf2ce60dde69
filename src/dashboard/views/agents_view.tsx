// Cards of all agents, each with the last lines of its screen. Agents that wait for a person come first.
import { useEffect, useRef } from 'preact/hooks';
import type { Agent } from '../../client/browser.ts';
import {
  compareNames,
  countText,
  cpuText,
  memoryText,
  spanText,
  visibleLine,
} from '../../presentation/format.ts';
import { StateLabel } from '../frame/status_mark.tsx';
import { urgencyOf } from '../state/agent_state.ts';
import { agentList, serviceList, usageOf } from '../state/daemon.ts';
import { linkTo, searchWords, setFilter, shownPlace } from '../state/place.ts';
import { tenSeconds } from '../state/ticker.ts';
import { screenOf, watchScreen } from './agent_screens.ts';

function CardUsage({ name }: { name: string }) {
  const usage = usageOf(name).value;
  return <span>{usage && `${cpuText(usage.cpu)} · ${memoryText(usage.rssMB)}`}</span>;
}

function LastOutput({ agent: { lastOutputAt, viewers } }: { agent: Agent }) {
  const seen = viewers > 0 ? `${countText(viewers, 'viewer')} · ` : '';
  const ago = lastOutputAt === null ? '' : `${spanText(tenSeconds.value - Date.parse(lastOutputAt))} ago`;
  return <span title="last output">{`${seen}${ago}`}</span>;
}

function Card({ agent }: { agent: Agent }) {
  const { name, active, agent_type: type, stack, state, title, question } = agent;
  const box = useRef<HTMLAnchorElement>(null);
  useEffect(
    () => (active && box.current ? watchScreen(name, box.current) : undefined),
    [name, active, state],
  );
  const screen = screenOf(name).value;
  return (
    <a class="agent-card" ref={box} href={linkTo('agents', name)} data-state={state} data-name={name}>
      <span class="card-head">
        <strong title={name}>{name}</strong>
        <span class="card-title soft">{[visibleLine(title), type, stack].filter(Boolean).join(' · ')}</span>
        <StateLabel state={state} />
      </span>
      {question.length > 0 ? (
        <span class="card-screen card-question">{question.map((line) => `${visibleLine(line)}\n`)}</span>
      ) : (
        <span class="card-screen" aria-hidden="true">
          {active ? (screen ?? ['…']).map((line) => `${visibleLine(line)}\n`) : 'not running'}
        </span>
      )}
      <span class="card-foot soft number">
        <CardUsage name={name} />
        <LastOutput agent={agent} />
      </span>
    </a>
  );
}

/** The agents in any state that match the search, the most urgent first. */
function foundAgents(): readonly Agent[] {
  const words = searchWords.value;
  return agentList.value
    .filter((agent) => {
      const text =
        `${agent.name} ${agent.stack ?? ''} ${agent.agent_type ?? ''} ${agent.state}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort(
      (one, other) => urgencyOf(one.state) - urgencyOf(other.state) || compareNames(one.name, other.name),
    );
}

/** A button per state with its number of agents, the most urgent first. It filters by the state. */
function Counts({ found }: { found: readonly Agent[] }) {
  const chosen = shownPlace.value.query['state'] ?? '';
  const counts = new Map<Agent['state'], number>();
  for (const { state } of found) counts.set(state, (counts.get(state) ?? 0) + 1);
  return (
    <fieldset class="counts" aria-label="agents by state">
      {[...counts].map(([state, count]) => (
        <button
          type="button"
          key={state}
          class="count"
          aria-pressed={chosen === state}
          onClick={() => setFilter('state', chosen === state ? '' : state)}
        >
          <span class="number">{count}</span> <StateLabel state={state} />
        </button>
      ))}
    </fieldset>
  );
}

function NoAgents() {
  if (serviceList.value === null) return <p class="empty soft">Reading the list …</p>;
  if (agentList.value.length > 0) return <p class="empty soft">No agent fits.</p>;
  return (
    <div class="empty">
      <p>No agents.</p>
      <p class="soft">
        <code>berth agent spinup bot --type claude</code> starts one in a terminal of its own.
      </p>
    </div>
  );
}

/** The view of all agents. */
export function AgentsView() {
  const found = foundAgents();
  const chosen = shownPlace.value.query['state'] ?? '';
  const shown = chosen === '' ? found : found.filter(({ state }) => state === chosen);
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Agents</h1>
        <Counts found={found} />
      </header>
      {shown.length === 0 && <NoAgents />}
      <div class="wall">
        {shown.map((agent) => (
          <Card key={agent.name} agent={agent} />
        ))}
      </div>
    </section>
  );
}
