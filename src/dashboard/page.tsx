// The page at `/`: the frame, and the view that the address names. The page shows everything that the daemon
// sends as plain text.
import { render } from 'preact';
import { ActionQuestion } from './frame/action_question.tsx';
import { BulkQuestion } from './frame/bulk_actions.tsx';
import { Dock } from './frame/dock.tsx';
import { Help } from './frame/help.tsx';
import { listenForKeys } from './frame/keyboard.ts';
import { Login } from './frame/login.tsx';
import { Brand, Navigation } from './frame/navigation.tsx';
import { NoticeList } from './frame/notice_list.tsx';
import { Palette } from './frame/palette.tsx';
import { ResourceList } from './frame/resource_list.tsx';
import { followAttention } from './state/attention.ts';
import { followCloud } from './state/cloud_data.ts';
import { follow, reconnect } from './state/daemon.ts';
import { shownPlace } from './state/place.ts';
import { resume, sessionCount, takeCode } from './state/session.ts';
import { AgentView } from './views/agent_view.tsx';
import { AgentsView } from './views/agents_view.tsx';
import { CloudView } from './views/cloud_view.tsx';
import { EventsView } from './views/events_view.tsx';
import { LogsView } from './views/logs_view.tsx';
import { Overview } from './views/overview.tsx';
import { ServiceView } from './views/service_view.tsx';

function View() {
  const { view, name } = shownPlace.value;
  if (view === 'agents') return name === null ? <AgentsView /> : <AgentView key={name} name={name} />;
  if (view === 'logs') return <LogsView />;
  if (view === 'events') return <EventsView />;
  if (view === 'cloud') return <CloudView id={name} />;
  return name === null ? <Overview /> : <ServiceView key={name} name={name} />;
}

function Page() {
  const { view, name } = shownPlace.value;
  return (
    <div class="frame" data-view={view} data-selected={name !== null}>
      <div class="side">
        <Brand />
        <Navigation />
        <ResourceList />
      </div>
      <main class="main" key={sessionCount.value}>
        {sessionCount.value > 0 && (
          <>
            <View />
            <Dock />
          </>
        )}
      </main>
      <NoticeList />
      <Palette />
      <Help />
      <BulkQuestion />
      <ActionQuestion />
      <Login />
    </div>
  );
}

// First of all, so that the code leaves the address as soon as possible.
const code = takeCode();
const root = document.getElementById('page');
if (root) render(<Page />, root);
listenForKeys();
followAttention();
addEventListener('hashchange', async () => {
  const another = takeCode();
  if (another !== null && (await resume(another))) reconnect();
});
await resume(code);
void follow();
void followCloud();
