// berth down
import { reverseDependencies, runInDependencyOrder } from '../../protocol/dependency_order.ts';
import { batchReporter } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, textOption } from '../kit/command.ts';
import { CommandError } from '../kit/exit_codes.ts';
import { describeStop } from '../kit/format.ts';
import { createProgress } from '../kit/progress.ts';
import { projectFileOf, projectFilePath } from '../kit/project_file.ts';

export const downCommand = defineCommand({
  about:
    'Stops the services of the project file in reverse dependency order and removes them with their logs. ' +
    'Works without the file too. Other services and the daemon keep running.',
  args: [
    { syntax: '[names...]', about: 'the services; default: all of the project file', completes: 'service' },
  ],
  options: {
    file: textOption(
      '-f, --file <file>',
      'project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    grace: durationOption('--grace <time>', 'time each service has to end; default: its own'),
    keep: flagOption('--keep', 'only stop them: they keep their registrations, logs and URLs'),
  },
  run: async (context, names, { file, grace, keep }) => {
    const path = projectFilePath(file);
    const client = await context.client();
    const all = await client.services();
    const details = await Promise.all(all.map(({ name }) => client.service(name)));
    const ours = details.filter(
      ({ labels, name }) => projectFileOf(labels) === path && (names.length === 0 || names.includes(name)),
    );
    const missing = names.find((name) => !ours.some((service) => service.name === name));
    if (missing !== undefined) throw new CommandError(`${missing} is no service that came from ${path}`);
    const progress = createProgress(context.out);
    const report = batchReporter(context, progress);
    const removeInterrupt = context.onInterrupt(() => progress.stop());
    const outcomes = await runInDependencyOrder(reverseDependencies(ours), async ({ name }) => {
      progress.begin(name, 'stopping');
      try {
        const stopped = await client.stop(name, { grace });
        if (!keep) await client.remove(name);
        const text = keep
          ? describeStop(stopped)
          : `${describeStop(stopped).replace('stopped', 'stopped and removed')}`;
        report.done(name, { record: { ...stopped, removed: !keep }, text });
      } finally {
        progress.end(name);
      }
    });
    for (const [name, outcome] of outcomes) {
      if ('failed' in outcome) report.failed(name, outcome.failed);
      if ('skipped' in outcome)
        report.failed(name, new CommandError(`not stopped: ${outcome.skipped} needs it and still runs`));
    }
    removeInterrupt();
    if (ours.length === 0) context.out.note(`Nothing of ${path} is up.`);
    return report.end();
  },
});
