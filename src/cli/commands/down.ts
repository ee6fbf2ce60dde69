// berth down
import { reverseDependencies, runInDependencyOrder } from '../../project/dependency_order.ts';
import { batchReporter } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, textOption } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';
import { createProgress } from '../kit/progress.ts';
import { projectFileOf, projectFilePath } from '../kit/project_file.ts';
import { describeStop } from './stop.ts';

export const downCommand = defineCommand({
  about:
    'Stops the services that came from the project file, in reverse order, and forgets them and their logs. The file itself may be gone. Services from elsewhere and the daemon are left alone.',
  args: [{ syntax: '[names...]', about: 'only these', completes: 'service' }],
  options: {
    file: textOption(
      '-f, --file <file>',
      'the project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    grace: durationOption('--grace <time>', 'how long each may take to end; default: its own'),
    keep: flagOption('--keep', 'only stop them: they stay registered and keep their logs and URLs'),
  },
  run: async (cli, names, { file, grace, keep }) => {
    const path = projectFilePath(file);
    const berth = await cli.client();
    const all = await berth.services();
    const details = await Promise.all(all.map(({ name }) => berth.service(name)));
    const ours = details.filter(
      ({ labels, name }) => projectFileOf(labels) === path && (names.length === 0 || names.includes(name)),
    );
    const missing = names.find((name) => !ours.some((service) => service.name === name));
    if (missing !== undefined) throw new CommandError(`${missing} is no service that came from ${path}`);
    const shown = createProgress(cli.out);
    const report = batchReporter(cli, shown);
    const off = cli.onInterrupt(() => shown.stop());
    const outcomes = await runInDependencyOrder(reverseDependencies(ours), async ({ name }) => {
      shown.begin(name, 'stopping');
      try {
        const stopped = await berth.stop(name, { grace });
        if (!keep) await berth.remove(name);
        const text = keep
          ? describeStop(stopped)
          : `${describeStop(stopped).replace('stopped', 'stopped and removed')}`;
        report.done(name, { record: { ...stopped, removed: !keep }, text });
      } finally {
        shown.end(name);
      }
    });
    for (const [name, outcome] of outcomes) {
      if ('failed' in outcome) report.failed(name, outcome.failed);
      if ('skipped' in outcome)
        report.failed(name, new CommandError(`not stopped: ${outcome.skipped} needs it and still runs`));
    }
    off();
    if (ours.length === 0) cli.out.note(`Nothing of ${path} is up.`);
    return report.end();
  },
});
