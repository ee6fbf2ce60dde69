// The facts of a service as rows for people: docs/reference.md "A service in JSON".
import type { Explanation, ServiceDetail } from '../../client/records.ts';
import { countText, cpuText, memoryText } from '../../presentation/format.ts';
import { liveCheckOf, readyCheckOf } from '../../protocol/checks.ts';
import { dependencyText } from '../../protocol/dependency_order.ts';
import { shownAddress } from '../../protocol/port_protocol.ts';
import { formatElapsed } from './format.ts';
import { projectFileOf } from './project_file.ts';

/** The title and the text of a fact. */
export type FactRow = [title: string, text: string];

function watchText({ watch }: ServiceDetail, { watching }: Explanation): string {
  if (!watch) return '';
  const folders = watching ? ` (${countText(watching.folders, 'folder')})` : ' (once it is started)';
  return `${watch.paths.join(', ')}${folders}: ${watch.action}`;
}
const limitsText = (limits: ServiceDetail['limits']): string =>
  [
    limits?.memoryMB === undefined ? '' : `${limits.memoryMB} MB`,
    limits?.cpus === undefined ? '' : `${limits.cpus} processors`,
    limits?.pids === undefined ? '' : `${limits.pids} processes`,
  ]
    .filter(Boolean)
    .join(', ');

function scheduleText({ schedule, nextRunAt, skippedRuns = 0 }: ServiceDetail): string {
  if (!schedule) return '';
  const zone = schedule.timezone === null ? '' : ` in ${schedule.timezone}`;
  const skipped = skippedRuns > 0 ? `, ${skippedRuns} skipped` : '';
  return `${schedule.cron}${zone}, next ${nextRunAt ?? 'never'}${skipped}`;
}

/** The facts of a service, without empty ones. The texts are not sanitized. */
export function factRows(service: ServiceDetail, explanation: Explanation): FactRow[] {
  const process = service.pid === undefined ? '' : `${service.pid}, up ${formatElapsed(service.startedAt)}`;
  const use = service.cpu === undefined ? '' : `${cpuText(service.cpu)} CPU, ${memoryText(service.rssMB)}`;
  const { lastCheck, backoff } = explanation;
  const check = lastCheck
    ? `${lastCheck.url}, ${formatElapsed(lastCheck.at)} ago: ` +
      `${lastCheck.error ?? lastCheck.status ?? 'passed'}`
    : '';
  const policy = typeof service.restart === 'string' ? service.restart : service.restart.policy;
  const rows: FactRow[] = [
    ['url', shownAddress(service) ?? ''],
    ['process', process],
    ['use', use],
    ['command', service.cmd],
    ['folder', service.cwd],
    ['stack', service.stack ?? ''],
    ['group', service.group === service.stack ? '' : (service.group ?? '')],
    ['needs', service.dependsOn.map(dependencyText).join(', ')],
    ['variables', [...service.envKeys, ...service.envFile].join(', ')],
    ['schedule', scheduleText(service)],
    ['inputs', service.inputs.join(', ')],
    [
      'ready-check',
      readyCheckOf(service.ready, service.port)?.text ??
        (service.kind === 'task' ? '' : 'none: the process being there counts'),
    ],
    ['watches', watchText(service, explanation)],
    ['live-check', liveCheckOf(service.live, service.port)?.text ?? ''],
    ['last check', check],
    ['restarts', service.restarts > 0 || policy !== 'no' ? `${service.restarts} (${policy})` : ''],
    ['limits', limitsText(service.limits)],
    ['next try', backoff ? `number ${backoff.attempt}, at ${backoff.nextAt}` : ''],
    ['project', projectFileOf(service.labels) ?? ''],
  ];
  return rows.filter(([, text]) => text !== '');
}
