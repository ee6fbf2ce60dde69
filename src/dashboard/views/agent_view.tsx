// One agent: its state, its actions, and its terminal.
import { useEffect, useState } from 'preact/hooks';
import type { Agent, Service } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { requestAction } from '../frame/action_question.tsx';
import { Button } from '../frame/button.tsx';
import { showLog } from '../frame/dock.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { AT_ONCE, perform, underWay } from '../state/actions.ts';
import { agentByName, serviceByName } from '../state/daemon.ts';
import { unfollowStart } from '../state/followed_starts.ts';
import { client } from '../state/session.ts';
import { tenSeconds } from '../state/ticker.ts';
import { MissingView } from './missing_view.tsx';
import { ServiceAddress } from './overview.tsx';
import { PromptBox } from './prompt_box.tsx';
import { RemoveButton } from './remove_button.tsx';
import { TerminalView } from './terminal_view.tsx';

/** Ends the process of an idle agent and keeps its conversation, or resumes that conversation. */
function SleepButton({ agent: { name, state } }: { agent: Agent }) {
  const isAsleep = state === 'asleep';
  const action = isAsleep ? 'wake' : 'sleep';
  const title = `${action} ${name}`;
  return (
    <Button
      icon={action}
      text={action}
      label={title}
      isOff={(!isAsleep && state !== 'idle') || underWay.value.has(title)}
      onPress={() => {
        unfollowStart(name);
        void perform(title, () => client[`${action}Agent`](name, AT_ONCE));
      }}
    />
  );
}

/** Whether a process listens on the agent's port. No event reports that, so the page polls for it. */
function useListener(name: string, pid: number | undefined): boolean {
  const [listening, setListening] = useState('');
  useEffect(() => {
    const end = new AbortController();
    client.explain(name, { signal: end.signal }).then(
      ({ portHolder }) => setListening(portHolder === null ? '' : name),
      // Without an answer, the address is no link.
      () => !end.signal.aborted && setListening(''),
    );
    return () => end.abort();
  }, [name, pid, tenSeconds.value]);
  return listening === name;
}

function AgentParts({ agent, service }: { agent: Agent; service: Service }) {
  const { name } = agent;
  const isListening = useListener(name, service.pid);
  const one = (action: 'start' | 'stop' | 'restart', isOff: boolean, keyHint: string) => (
    <Button
      icon={action}
      text={action}
      label={`${action} ${name}`}
      isOff={isOff || underWay.value.has(`${action} ${name}`)}
      onPress={() => requestAction(action, name)}
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
        <ServiceAddress service={service} isListening={isListening} />
        <div class="actions">
          {one('start', agent.active, 's')}
          {one('restart', false, 'r')}
          {one('stop', false, 'x')}
          <SleepButton agent={agent} />
          <Button icon="logs" text="log" label={`log of ${name}`} onPress={() => showLog(name)} keyHint="l" />
          <RemoveButton name={name} what="agent" />
        </div>
      </header>
      <TerminalView name={name} isMain />
    </section>
  );
}

/** The view of the agent `name`. The field for a prompt stays when the agent goes while a person types. */
export function AgentView({ name }: { name: string }) {
  const agent = agentByName.value.get(name);
  const service = serviceByName.value.get(name);
  return (
    <div class="view">
      {agent && service ? (
        <AgentParts agent={agent} service={service} />
      ) : (
        <MissingView name={name} what="agent" list={{ view: 'agents', text: 'All agents' }} />
      )}
      <PromptBox name={name} agent={agent} />
    </div>
  );
}
