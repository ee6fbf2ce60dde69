// The field for a prompt, which is typed as soon as the agent takes it: docs/reference.md "Prompt".
import { useState } from 'preact/hooks';
import type { Agent } from '../../client/browser.ts';
import { Button } from '../frame/button.tsx';
import { perform, underWay } from '../state/actions.ts';
import { draftOf } from '../state/drafts.ts';
import { promptInTurn, waitingPrompts } from '../state/waiting_prompts.ts';

/** What happens to a prompt in these states. In other states, the agent takes it at once. */
const HINTS: Partial<Record<Agent['state'], string>> = {
  blocked: 'It asks something: answer it in the terminal',
  working: 'It is working: the prompt waits for its turn',
  starting: 'It is starting: the prompt waits for its turn',
  asleep: 'It sleeps: a prompt wakes it',
};

/** The state of an agent that takes prompts; null: it has ended, or was removed. */
const takingState = (agent: Agent | undefined): Agent['state'] | null =>
  agent && (agent.active || agent.state === 'asleep') ? agent.state : null;

/** What becomes of the prompt for an agent in `state`; of one that waits, also that only the tab has it. */
function hintOf(state: Agent['state'] | null, isSending: boolean, isWaiting: boolean): string {
  if (state === null) return 'It does not run: nothing is sent';
  if (!isWaiting) return HINTS[state] ?? (isSending ? 'typing' : '');
  return `${HINTS[state] ?? 'Another prompt comes first'}. It is lost if this tab is closed`;
}

/**
 * The field and its button. Enter sends the prompt, Shift-Enter begins a new line. The field of an agent that
 * has ended stays while it has the focus or a text: without it, the rest of a sentence would press shortcuts.
 */
export function PromptBox({ name, agent }: { name: string; agent: Agent | undefined }) {
  const [hasFocus, setFocus] = useState(false);
  const state = takingState(agent);
  const label = `prompt for ${name}`;
  const draft = draftOf(label);
  const text = draft.value;
  const title = `prompt ${name}`;
  const isSending = underWay.value.has(title);
  const waiting = waitingPrompts.value.get(name);
  const isOff = isSending || state === null || state === 'blocked' || text.trim() === '';
  const send = async (): Promise<void> => {
    if (isOff) return;
    let isTyped = false;
    await perform(title, async () => {
      isTyped = await promptInTurn(name, text);
    });
    if (isTyped) draft.value = '';
  };
  if (state === null && !hasFocus && text === '') return null;
  return (
    <div class="prompt-box">
      <textarea
        class="field"
        rows={1}
        aria-label={label}
        placeholder="Prompt"
        readOnly={isSending}
        value={text}
        onFocus={() => setFocus(true)}
        onBlur={() => setFocus(false)}
        onInput={(event) => {
          draft.value = event.currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send();
        }}
      />
      <span class="soft" role="status">
        {hintOf(state, isSending, waiting !== undefined)}
      </span>
      {waiting && (
        <Button text="take back" label={`take back the prompt for ${name}`} onPress={() => waiting.abort()} />
      )}
      <Button text="send" label={`send the prompt to ${name}`} isOff={isOff} onPress={() => void send()} />
    </div>
  );
}
