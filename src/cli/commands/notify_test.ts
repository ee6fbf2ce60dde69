// berth notify test
import { defineCommand } from '../kit/command.ts';
import { CommandError, EXIT_CODE } from '../kit/exit_codes.ts';
import { sanitizeLine } from '../kit/sanitize.ts';

export const notifyTestCommand = defineCommand({
  about:
    'Sends a notice to every [[notify]] of the configuration that the daemon has read, and says which have ' +
    'arrived. Exit code 1 if one has not.',
  run: async (context) => {
    const client = await context.client();
    const results = await client.testNotices();
    if (results.length === 0)
      throw new CommandError(
        'the daemon has no [[notify]]',
        'Add one to the configuration, and restart the daemon.',
      );
    const lines = results.map(({ target, error, ms }) =>
      sanitizeLine(error === null ? `✓ ${target} (${ms}ms)` : `✗ ${target}: ${error}`),
    );
    context.out.record({ results }, () => lines.join('\n'));
    return results.every(({ ok }) => ok) ? EXIT_CODE.ok : EXIT_CODE.failed;
  },
});
