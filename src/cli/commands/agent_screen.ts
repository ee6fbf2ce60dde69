// berth agent screen, keys

import { countText } from '../../presentation/format.ts';
import { defineCommand, flagOption, textOption } from '../kit/command.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

export const agentScreenCommand = defineCommand({
  about: 'Prints what a viewer of its terminal would see now. Nothing of the terminal changes.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    ansi: flagOption('--ansi', 'keep colours'),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth agent screen bot | tail -5', 'its last lines']],
  run: async (context, [given = ''], { ansi, ...choice }) => {
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    const screen = await client.agentScreen(name, { format: ansi ? 'ansi' : 'text' });
    context.out.record(screen, () =>
      screen.lines
        .map(ansi ? String : sanitizeLine)
        .join('\n')
        .trimEnd(),
    );
  },
});

export const agentKeysCommand = defineCommand({
  about:
    'A key is a name (Enter, Tab, Escape, Space, Backspace, Up, Down, Left, Right, Home, End, PageUp, PageDown, ' +
    'Insert, Delete, F1 to F12) or a character, with C-, M- or S- before it. --text types text as it is.',
  args: [
    { syntax: '<name>', about: 'the agent', completes: 'agent' },
    { syntax: '[keys...]', about: 'the keys, in order' },
  ],
  options: {
    text: textOption('--text <text>', 'text to type before the keys'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth agent keys bot Down Down Enter', 'choose the third answer'],
    ['berth agent keys bot --text "make test" Enter', 'type a line'],
  ],
  run: async (context, [given = '', ...keys], { text, ...choice }) => {
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    let typed = { name, bytes: 0 };
    for (const part of [text === undefined ? null : { text }, keys.length > 0 ? { keys } : null]) {
      if (!part) continue;
      const { bytes } = await client.typeKeys(name, part);
      typed = { name, bytes: typed.bytes + bytes };
    }
    context.out.record(typed, () => `${given} received ${countText(typed.bytes, 'byte')}`);
  },
});
