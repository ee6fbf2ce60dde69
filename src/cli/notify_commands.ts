// The commands for notices.
import type { CommandRow } from './kit/command_table.ts';

export const NOTIFY_ROWS: readonly CommandRow[] = [
  {
    name: 'notify test',
    summary: 'send a notice to every [[notify]] of the configuration',
    heading: 'Monitoring',
    load: async () => (await import('./lazy_commands.ts')).notifyTestCommand,
  },
];
