// berth status, berth explain
import type { Explanation, ServiceDetail } from '../client/records.ts';
import { hasCode } from './cli.ts';
import { command } from './command.ts';
import { EXIT } from './exit.ts';
import type { Output } from './output.ts';
import { plain, plainLine } from './plain.ts';
import { fileOf } from './project_file.ts';
import { cpuText, memoryText, since, statusStyle, statusText } from './show.ts';

type Row = [title: string, text: string];

function facts(service: ServiceDetail, explanation: Explanation): Row[] {
  const process = service.pid === undefined ? '' : `${service.pid}, up ${since(service.startedAt)}`;
  const use = service.cpu === undefined ? '' : `${cpuText(service.cpu)} CPU, ${memoryText(service.rssMB)}`;
  const { lastCheck, backoff } = explanation;
  const check = lastCheck
    ? `${lastCheck.url}, ${since(lastCheck.at)} ago: ${lastCheck.error ?? lastCheck.status ?? 'passed'}`
    : '';
  const rows: Row[] = [
    ['url', service.url],
    ['process', process],
    ['use', use],
    ['command', service.cmd],
    ['folder', service.cwd],
    ['group', service.group ?? ''],
    ['needs', service.dependsOn.join(', ')],
    ['ready-check', service.ready ?? 'none: the process being there counts'],
    ['last check', check],
    [
      'restarts',
      service.restarts > 0 || service.restart !== 'no' ? `${service.restarts} (${service.restart})` : '',
    ],
    ['next try', backoff ? `number ${backoff.attempt}, at ${backoff.nextAt}` : ''],
    ['project', fileOf(service.labels) ?? ''],
  ];
  return rows.filter(([, text]) => text !== '');
}

function text(service: ServiceDetail, explanation: Explanation, out: Output): string {
  const rows = facts(service, explanation);
  const width = Math.max(...rows.map(([title]) => title.length));
  const lines = rows.map(
    ([title, value]) => `  ${out.style('dim', title.padEnd(width))}  ${plainLine(value)}`,
  );
  const log = explanation.lastLines.map((line) => `  ${out.style('dim', '|')} ${plainLine(line)}`);
  const stale = service.stale
    ? [`  It runs an older registration: \`berth restart ${service.name}\` applies the new one.`]
    : [];
  return [
    `${out.style('bold', service.name)} is ${out.style(statusStyle(service), statusText(service))}`,
    ...lines,
    '',
    `  ${plain(explanation.reason)}`,
    ...(explanation.waitingFor ? [`  It waits for ${plain(explanation.waitingFor)}.`] : []),
    `  ${plain(explanation.next)}`,
    ...stale,
    ...(log.length > 0 ? ['', '  The last lines of its log:', ...log] : []),
  ].join('\n');
}

export const status = command({
  about:
    'Says what the service is doing, what it waits for, how it ended, and shows the end of its log. Exit code 0 when it is running, 3 when it is not, 4 when there is no such service.',
  args: [{ syntax: '<name>', about: 'the service', completes: 'service' }],
  examples: [['berth status web -o json | jq .exit', 'how it ended']],
  run: async (cli, [name = '']) => {
    const berth = await cli.berth();
    try {
      const [service, explanation] = await Promise.all([berth.service(name), berth.explain(name)]);
      cli.out.record({ ...service, ...explanation }, () => text(service, explanation, cli.out));
      return service.status === 'running' ? EXIT.ok : EXIT.notRunning;
    } catch (error) {
      if (!hasCode(error, 'unknown_service')) throw error;
      if (!cli.out.isData) cli.out.note(`there is no service ${name}; \`berth ps\` lists them`);
      else cli.out.say(JSON.stringify(error));
      return EXIT.unknown;
    }
  },
});
