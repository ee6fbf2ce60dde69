// One agent: its state, what can be done, and its terminal.

import { visibleLine } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { showLog } from '../frame/dock.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { actOn, underWay } from '../state/actions.ts';
import { agentByName, serviceByName, serviceList } from '../state/daemon.ts';
import { linkTo } from '../state/place.ts';
import { AddressLink } from './overview.tsx';
import { TerminalView } from './terminal_view.tsx';

/** The view of the agent `name`. */
export function AgentView({ name }: { name: string }) {
  const agent = agentByName.value.get(name);
  const service = serviceByName.value.get(name);
  if (!agent || !service)
    return (
      <section class="view" aria-labelledby="view-title">
        <header class="view-head">
          <h1 id="view-title">{visibleLine(name)}</h1>
        </header>
        <p class="empty">
          {serviceList.value === null
            ? 'Reading …'
            : 'There is no agent of this name. It may have been removed.'}{' '}
          <a href={linkTo('agents')}>All agents</a>
        </p>
      </section>
    );
  const one = (action: 'start' | 'stop' | 'restart', isOff: boolean, keyHint: string) => (
    <Button
      icon={action}
      text={action}
      label={`${action} ${name}`}
      isOff={isOff || underWay.value.has(`${action} ${name}`)}
      onPress={() => void actOn(action, name)}
      keyHint={keyHint}
    />
  );
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">{name}</h1>
        <StateLabel state={agent.state} />
        <span class="soft head-place">
          {[visibleLine(agent.title), agent.agent_type, agent.stack].filter(Boolean).join(' · ')}
        </span>
        <AddressLink service={service} />
        <div class="actions">
          {one('start', agent.active, 's')}
          {one('restart', false, 'r')}
          {one('stop', false, 'x')}
          <Button icon="logs" text="log" label={`log of ${name}`} onPress={() => showLog(name)} keyHint="l" />
        </div>
      </header>
      <TerminalView name={name} />
    </section>
  );
}
