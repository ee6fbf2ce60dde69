// berth status, berth explain
import { existsSync } from 'node:fs';
import type { Explanation, ServiceDetail } from '../../client/records.ts';
import { defineCommand } from '../kit/command.ts';
import { hasErrorCode } from '../kit/context.ts';
import { EXIT_CODE } from '../kit/exit_codes.ts';
import { describeStatus, statusStyle } from '../kit/format.ts';
import type { Output } from '../kit/output.ts';
import { hasReplacedFolder } from '../kit/registration_diff.ts';
import { safeJson, sanitize, sanitizeLine } from '../kit/sanitize.ts';
import { factRows } from '../kit/service_facts.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

/** The statuses for exit code 0: a service that runs, and a task that has completed. */
const UP: ReadonlySet<string> = new Set(['running', 'completed']);

function statusReport(service: ServiceDetail, explanation: Explanation, out: Output): string {
  const rows = factRows(service, explanation);
  const width = Math.max(...rows.map(([title]) => title.length));
  const lines = rows.map(
    ([title, value]) => `  ${out.style('dim', title.padEnd(width))}  ${sanitizeLine(value)}`,
  );
  const log = explanation.lastLines.map((line) => `  ${out.style('dim', '|')} ${sanitizeLine(line)}`);
  const stale = [
    ...(existsSync(service.cwd)
      ? []
      : [`  Its folder does not exist any more: ${sanitizeLine(service.cwd)}`]),
    ...(service.stale
      ? [`  It runs an older registration: \`berth restart ${service.name}\` applies the new one.`]
      : []),
    ...(hasReplacedFolder(service)
      ? [
          `  Its folder was removed and made again: \`berth restart ${service.name}\` starts it in the new one.`,
        ]
      : []),
  ];
  return [
    `${out.style('bold', service.name)} is ${out.style(statusStyle(service), describeStatus(service))}`,
    ...lines,
    '',
    `  ${sanitize(explanation.reason)}`,
    ...(explanation.waitingFor ? [`  It waits for ${sanitize(explanation.waitingFor)}.`] : []),
    `  ${sanitize(explanation.next)}`,
    ...stale,
    ...(log.length > 0 ? ['', '  The last lines of its log:', ...log] : []),
  ].join('\n');
}

export const statusCommand = defineCommand({
  about:
    'Shows what the service does, what it waits for, how it ended, and the end of its log. Exit code 0 if ' +
    'it is running or has completed, 3 if not, 4 if there is no such service.',
  args: [{ syntax: '<name>', about: 'the service', completes: 'service' }],
  options: SCOPE_OPTIONS,
  examples: [['berth status web -o json | jq .exit', 'how it ended']],
  run: async (context, [given = ''], choice) => {
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    try {
      const [service, explanation] = await Promise.all([client.service(name), client.explain(name)]);
      context.out.record({ ...service, ...explanation }, () =>
        statusReport(service, explanation, context.out),
      );
      return UP.has(service.status) ? EXIT_CODE.ok : EXIT_CODE.notRunning;
    } catch (error) {
      if (!hasErrorCode(error, 'unknown_service')) throw error;
      if (!context.out.isData) context.out.note(`there is no service ${name}; \`berth ps\` lists them`);
      else context.out.errorLine(safeJson(error));
      return EXIT_CODE.unknown;
    }
  },
});
