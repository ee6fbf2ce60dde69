// berth agent prompt
import { text as readText } from 'node:stream/consumers';
import type { AgentStanding, PromptRequest } from '../../client/records.ts';
import { defineCommand, durationOption, flagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

/** The prompt from the arguments; for `-`, stdin without its final newline, as in command substitution. */
async function promptText(words: readonly string[]): Promise<string> {
  const text = words.join(' ');
  if (text !== '-') return text;
  if (process.stdin.isTTY) throw new UsageError('- reads the prompt from stdin, which is a terminal');
  return (await readText(process.stdin)).replace(/\r?\n$/, '');
}

/** Reports the agent's state, with its question on stderr. Returns the exit code. */
function report({ out }: CommandContext, given: string, { state, question }: AgentStanding): number {
  if (state !== 'blocked') return EXIT_CODE.ok;
  out.warn(`${given} asks something; answer with \`berth agent keys\` or \`berth agent attach\``);
  for (const line of question) out.note(sanitizeLine(line));
  return EXIT_CODE.conflict;
}

export const agentPromptCommand = defineCommand({
  about:
    'Types the text into the terminal of the agent, as a person would, and submits it. An agent that asks ' +
    'something or works takes none (exit code 8). With --wait it prints what has appeared on the screen when ' +
    'the agent is idle again; exit code 8 if it asks something instead, 7 if that takes too long.',
  args: [
    { syntax: '<name>', about: 'the agent', completes: 'agent' },
    { syntax: '<text...>', about: 'the prompt; - reads it from stdin' },
  ],
  options: {
    wait: flagOption('-w, --wait', 'wait until it is idle, and print the lines that have appeared'),
    queue: flagOption('--queue', 'while it works, wait until it takes a prompt'),
    timeout: durationOption('--timeout <time>', 'time to wait; default 10m'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth agent prompt bot --wait "run the tests and fix what fails"', 'one step of a script'],
    ['git diff | berth agent prompt bot --queue -', 'a long prompt'],
  ],
  run: async (context, [given = '', ...words], { wait, queue, timeout, ...choice }) => {
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    const prompt: PromptRequest = {
      text: await promptText(words),
      queue,
      wait: wait && 'idle',
      ...(timeout === undefined ? {} : { timeout }),
    };
    const answer = await client.promptAgent(name, prompt);
    const text = answer.lines?.map(sanitizeLine).join('\n') ?? `${given} received the prompt`;
    context.out.record(answer, () => text);
    return report(context, given, answer);
  },
});
