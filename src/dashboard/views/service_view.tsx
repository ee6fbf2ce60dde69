// One service: its state with the reason, its actions, its usage, its dependencies, and its events.
import { useEffect, useState } from 'preact/hooks';
import type { Explanation, Service, ServiceDetail } from '../../client/browser.ts';
import { eventSubject } from '../../presentation/event_text.ts';
import { visibleLine } from '../../presentation/format.ts';
import { isStackHook, listedName } from '../../presentation/sections.ts';
import { requestAction } from '../frame/action_question.tsx';
import { Button } from '../frame/button.tsx';
import { ChoiceAction } from '../frame/choice_action.tsx';
import { showLog } from '../frame/dock.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { type ServiceAction, signalService, underWay } from '../state/actions.ts';
import { connectionCount, lastEvent, recentEvents, serviceByName } from '../state/daemon.ts';
import { client, errorText } from '../state/session.ts';
import { EventRow } from './event_rows.tsx';
import { MissingView } from './missing_view.tsx';
import { isAtRest, ServiceAddress } from './overview.tsx';
import { RemoveButton } from './remove_button.tsx';
import { Dependencies, Facts } from './service_facts.tsx';
import { UsageCharts } from './usage_charts.tsx';

const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGKILL'];
const SIGNAL_CHOICES = [['', 'signal …'], ...SIGNALS.map((one) => [one, one] as const)] as const;
const EVENTS_SHOWN = 30;

/** The details of a service. Reads them again after each of its events, and after a reconnect. */
function useDetails(name: string, status: string | undefined) {
  const [detail, setDetail] = useState<ServiceDetail | null>(null);
  const [why, setWhy] = useState<Explanation | string | null>(null);
  const event = lastEvent.value;
  const eventId = event && eventSubject(event) === name ? event.id : null;
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    const ask = async (): Promise<void> => {
      try {
        setDetail(await client.service(name, { signal }));
        setWhy(await client.explain(name, { signal }));
      } catch (error) {
        if (!signal.aborted) setWhy(errorText(error));
      }
    };
    void ask();
    return () => end.abort();
  }, [name, status, eventId, connectionCount.value]);
  return { detail: detail?.name === name ? detail : null, why };
}

/** Why the service has its state, in sentences; after a crash, with its last lines. */
function Why({ why }: { why: Explanation | string | null }) {
  if (why === null) return <p class="why soft">…</p>;
  if (typeof why === 'string') return <p class="why">{visibleLine(why)}</p>;
  const { reason, next, waitingFor, portHolder, lastCheck, lastLines, status } = why;
  const hasFailed = status === 'crashed';
  return (
    <div class="why">
      <p>
        {visibleLine(reason)} <span class="soft">{visibleLine(next)}</span>
      </p>
      {waitingFor !== null && <p class="soft">It waits for {visibleLine(waitingFor)}.</p>}
      {hasFailed && portHolder !== null && <p class="soft">Its port is held by {visibleLine(portHolder)}.</p>}
      {hasFailed && lastCheck?.error && <p class="soft">Its last check: {visibleLine(lastCheck.error)}</p>}
      {hasFailed && lastLines.length > 0 && (
        <pre class="last-lines">{lastLines.map((line) => `${visibleLine(line)}\n`)}</pre>
      )}
    </div>
  );
}

function Actions({ service, canSleep }: { service: Service; canSleep: boolean }) {
  const { name, status } = service;
  const one = (action: ServiceAction, isOff: boolean, keyHint?: string) => (
    <Button
      icon={action}
      text={action}
      label={`${action} ${name}`}
      kind={action === 'start' && !isOff ? 'main' : 'normal'}
      isOff={isOff || underWay.value.has(`${action} ${name}`)}
      onPress={() => requestAction(action, name)}
      {...(keyHint === undefined ? {} : { keyHint })}
    />
  );
  const isSleeping = status === 'sleeping';
  return (
    <div class="actions">
      {one('start', !isAtRest(service) || isStackHook(service), 's')}
      {one('restart', isStackHook(service), 'r')}
      {one('stop', false, 'x')}
      {canSleep && (isSleeping ? one('wake', false) : one('sleep', status !== 'running'))}
      <Button icon="logs" text="log" label={`log of ${name}`} onPress={() => showLog(name)} keyHint="l" />
      <ChoiceAction
        label={`send a signal to ${name}`}
        value=""
        options={SIGNAL_CHOICES}
        action="send"
        isOff={service.pid === undefined}
        onPick={(signalName) => void signalService(name, signalName)}
      />
      <RemoveButton name={name} what="service" />
    </div>
  );
}

function OwnEvents({ name }: { name: string }) {
  const own = recentEvents.value.filter((event) => eventSubject(event) === name).slice(0, EVENTS_SHOWN);
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {own.length === 0 && <p class="soft">Nothing yet.</p>}
      {own.map((event) => (
        <EventRow key={event.id} event={event} hasSubject={false} />
      ))}
    </section>
  );
}

/** The view of the service `name`. */
export function ServiceView({ name }: { name: string }) {
  const service = serviceByName.value.get(name);
  const { detail, why } = useDetails(name, service && `${service.status} ${service.pid ?? ''}`);
  if (!service)
    return <MissingView name={name} what="service" list={{ view: 'services', text: 'All services' }} />;
  const { status, stack, group } = service;
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title" title={name}>
          {listedName(service)}
        </h1>
        <StateLabel state={status} />
        <span class="soft head-place">{stack ?? group ?? ''}</span>
        <ServiceAddress service={service} />
        <Actions service={service} canSleep={detail !== null && detail.sleep !== null} />
      </header>
      <div class="view-body">
        <Why why={why} />
        <div class="columns">
          <Facts service={service} detail={detail} />
          <UsageCharts name={name} />
          {detail && <Dependencies name={name} detail={detail} />}
          <OwnEvents name={name} />
        </div>
      </div>
    </section>
  );
}
