// berth down
import { inOrder, reversed } from '../project/order.ts';
import { command, duration, flag, text } from './command.ts';
import { reporter } from './each.ts';
import { CommandError } from './exit.ts';
import { progress } from './progress.ts';
import { fileOf, projectPath } from './project_file.ts';
import { stopText } from './stop.ts';

export const down = command({
  about:
    'Stops the services that came from the project file, in reverse order, and forgets them and their logs. The file itself may be gone. Services from elsewhere and the daemon are left alone.',
  args: [{ syntax: '[names...]', about: 'only these', completes: 'service' }],
  options: {
    file: text(
      '-f, --file <file>',
      'the project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    grace: duration('--grace <time>', 'how long each may take to end; default: its own'),
    keep: flag('--keep', 'only stop them: they stay registered and keep their logs and URLs'),
  },
  run: async (cli, names, { file, grace, keep }) => {
    const path = projectPath(file);
    const berth = await cli.berth();
    const all = await berth.services();
    const details = await Promise.all(all.map(({ name }) => berth.service(name)));
    const ours = details.filter(
      ({ labels, name }) => fileOf(labels) === path && (names.length === 0 || names.includes(name)),
    );
    const missing = names.find((name) => !ours.some((service) => service.name === name));
    if (missing !== undefined) throw new CommandError(`${missing} is no service that came from ${path}`);
    const shown = progress(cli.out);
    const report = reporter(cli, shown);
    const off = cli.onInterrupt(() => shown.stop());
    const outcomes = await inOrder(reversed(ours), async ({ name }) => {
      shown.begin(name, 'stopping');
      try {
        const stopped = await berth.stop(name, { grace });
        if (!keep) await berth.remove(name);
        const text = keep
          ? stopText(stopped)
          : `${stopText(stopped).replace('stopped', 'stopped and removed')}`;
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
