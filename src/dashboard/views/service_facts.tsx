// The facts about a service, and what it depends on.
import { useEffect, useState } from 'preact/hooks';
import type { Service, ServiceDetail } from '../../client/browser.ts';
import {
  clockText,
  cpuText,
  dayText,
  endText,
  memoryText,
  spanText,
  visibleLine,
} from '../../presentation/format.ts';
import { listedName } from '../../presentation/sections.ts';
import { StateShape } from '../frame/status_mark.tsx';
import { serviceByName, serviceList, usageOf } from '../state/daemon.ts';
import { linkTo } from '../state/place.ts';
import { client } from '../state/session.ts';
import { second } from '../state/ticker.ts';
import { type Fact, FactCard } from './fact_card.tsx';

function Uptime({ startedAt }: { startedAt: string }) {
  return (
    <span title={`since ${dayText(startedAt)} ${clockText(startedAt)}`}>
      {spanText(second.value - Date.parse(startedAt))}
    </span>
  );
}

function Usage({ name }: { name: string }) {
  const usage = usageOf(name).value;
  return <>{usage ? `${cpuText(usage.cpu)} of a core, ${memoryText(usage.rssMB)}` : '–'}</>;
}

const readyText = (ready: ServiceDetail['ready']): string =>
  typeof ready === 'string'
    ? ready
    : Object.entries(ready ?? {})
        .map((pair) => pair.map(String).join(' '))
        .join(', ');

const restartText = (restart: ServiceDetail['restart']): string =>
  typeof restart === 'string' ? restart : restart.policy;

function specFacts(detail: ServiceDetail): Fact[] {
  const { cmd, cwd, ready, restart, watch, schedule, sleep, labels, kind, envKeys } = detail;
  return [
    ['Command', <code key="cmd">{visibleLine(cmd)}</code>],
    ['Folder', <code key="cwd">{visibleLine(cwd)}</code>],
    kind === 'task' && ['Kind', 'task'],
    ready !== null && ['Ready when', <code key="ready">{visibleLine(readyText(ready))}</code>],
    ['Restart', restartText(restart)],
    sleep !== null && ['Sleeps after', `${sleep.afterMinutes} min`],
    schedule !== null && ['Schedule', <code key="schedule">{visibleLine(schedule.cron)}</code>],
    watch !== null && ['Watch', 'its files'],
    // The values never leave the daemon.
    envKeys.length > 0 && ['Variables', <code key="variables">{visibleLine(envKeys.join(', '))}</code>],
    labels.length > 0 && ['Labels', visibleLine(labels.join(', '))],
    detail.stale && ['Note', 'The process runs an older registration: restart it.'],
  ];
}

/** The facts about a service, as names and values. */
export function Facts({ service, detail }: { service: Service; detail: ServiceDetail | null }) {
  const { name, pid, port, innerPort, restarts, startedAt, status } = service;
  const end = endText(service);
  const facts: Fact[] = [
    ['Uptime', startedAt === undefined ? '–' : <Uptime key="uptime" startedAt={startedAt} />],
    ['Uses', <Usage key="usage" name={name} />],
    ['Process', pid === undefined ? '–' : `pid ${pid}`],
    end !== '' && status !== 'running' && ['Last end', end],
    ['Restarts', restarts],
    ['Port', port === null ? 'none' : `${port}${innerPort === undefined ? '' : ` → ${innerPort}`}`],
    ['Name', <code key="name">{name}</code>],
    service.nextRunAt != null && [
      'Next run',
      `${dayText(service.nextRunAt)} ${clockText(service.nextRunAt)}`,
    ],
    ...(detail ? specFacts(detail) : []),
  ];
  return <FactCard facts={facts} />;
}

const targetOf = (dependency: ServiceDetail['dependsOn'][number]): { name: string; condition: string } =>
  typeof dependency === 'string'
    ? { name: dependency, condition: '' }
    : { name: dependency.name, condition: dependency.condition };

function Node({ name, detail = '' }: { name: string; detail?: string }) {
  const service = serviceByName.value.get(name);
  return (
    <a class="node" href={linkTo('services', name)}>
      <StateShape state={service?.status ?? ''} />
      <span>{service ? listedName(service) : name}</span>
      <span class="soft">{service ? service.status : 'not registered'}</span>
      {detail !== '' && <span class="soft">· {detail}</span>}
    </a>
  );
}

/** The services of the same stack that depend on `name`; read once. */
function useDependents(name: string, stack: string | null): readonly string[] {
  const [dependents, setDependents] = useState<readonly string[]>([]);
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    const near = (serviceList.peek() ?? [])
      .filter((one) => one.stack === stack && one.name !== name)
      .slice(0, 50);
    const ask = async (): Promise<void> => {
      const found: string[] = [];
      for (const one of near) {
        const { dependsOn } = await client.service(one.name, { signal });
        if (dependsOn.some((dependency) => targetOf(dependency).name === name)) found.push(one.name);
      }
      setDependents(found);
    };
    // A service that was removed meanwhile depends on nothing.
    ask().catch(() => {});
    return () => end.abort();
  }, [name, stack]);
  return dependents;
}

/** The services that a service depends on and those that depend on it, with their states. */
export function Dependencies({ name, detail }: { name: string; detail: ServiceDetail }) {
  const dependents = useDependents(name, detail.stack);
  if (detail.dependsOn.length === 0 && dependents.length === 0) return null;
  return (
    <section class="card" aria-labelledby="graph-title">
      <h2 id="graph-title">Dependencies</h2>
      <div class="graph">
        <fieldset class="graph-column" aria-label="it needs">
          {detail.dependsOn.map(targetOf).map((one) => (
            <Node key={one.name} name={one.name} detail={one.condition} />
          ))}
        </fieldset>
        <div
          class={`graph-self ${detail.dependsOn.length > 0 ? 'has-needs' : ''} ${dependents.length > 0 ? 'is-needed' : ''}`}
        >
          <Node name={name} />
        </div>
        <fieldset class="graph-column" aria-label="need it">
          {dependents.map((one) => (
            <Node key={one} name={one} />
          ))}
        </fieldset>
      </div>
    </section>
  );
}
