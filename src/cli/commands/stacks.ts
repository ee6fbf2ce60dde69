// berth stacks
import type { Stack } from '../../client/records.ts';
import { memoryText } from '../../presentation/format.ts';
import { defineCommand } from '../kit/command.ts';
import { relativePath } from '../kit/format.ts';
import type { Column } from '../kit/output.ts';

const COLUMNS: readonly Column<Stack>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  {
    title: 'RUNNING',
    cell: ({ running, services }) => (services === 0 ? 'down' : `${running}/${services}`),
    alignRight: true,
    style: ({ running, services }) => (services === 0 ? 'dim' : running === services ? 'green' : 'yellow'),
  },
  { title: 'MEMORY', cell: ({ running, rssMB }) => (running ? memoryText(rssMB) : ''), alignRight: true },
  { title: 'BRANCH', cell: ({ branch }) => branch, canShrink: true },
  {
    title: 'PATH',
    cell: ({ path, gone }) => (path === null ? '' : `${relativePath(path)}${gone ? ' (gone)' : ''}`),
    style: ({ gone }) => (gone ? 'red' : undefined),
  },
];

export const stacksCommand = defineCommand({
  about:
    'A stack is a project at one branch: the main working tree, or a linked one of git. `berth rm --stack` ' +
    'removes one, such as one whose folder is gone.',
  run: async (context) => {
    const stacks = await (await context.client()).stacks();
    context.out.rows(stacks, COLUMNS, 'There are no stacks. `berth up` makes one of a project.');
  },
});
