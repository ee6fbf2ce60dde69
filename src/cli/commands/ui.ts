// berth ui
import { defineCommand, negatedFlagOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { stdout } from '../kit/standard_streams.ts';

export const uiCommand = defineCommand({
  about:
    'Shows services, agents and workloads as they change, on the whole terminal, and starts, stops, restarts, ' +
    'attaches and reads logs by single keys; ? lists them. While no daemon runs, it waits for one.',
  args: [{ syntax: '[words...]', about: 'show only what has each of these words', completes: 'service' }],
  options: { color: negatedFlagOption('--no-color', 'no colours; NO_COLOR does the same') },
  run: async (context, words, { color }) => {
    const isTerminal = process.stdin.isTTY === true && stdout().isTTY === true;
    if (context.out.isData || !isTerminal || process.env['TERM'] === 'dumb')
      throw new UsageError(
        'berth ui needs a terminal that it can draw on',
        '`berth ps`, `berth top` and `berth events` work without one.',
      );
    // Loaded here because no other command needs it.
    const { startUi } = await import('../ui/start_ui.ts');
    const hasColours = color && context.out.style('red', 'x') !== 'x';
    return startUi(context, { hasColours, filter: words.join(' ') });
  },
});
