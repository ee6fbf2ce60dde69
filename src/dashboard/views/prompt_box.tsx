// The field for a prompt. The daemon types it as soon as the agent can take it: docs/reference.md "Prompt".
import type { Agent } from '../../client/browser.ts';
import { Button } from '../frame/button.tsx';
import { perform, underWay } from '../state/actions.ts';
import { draftOf } from '../state/drafts.ts';
import { client } from '../state/session.ts';

/** What happens to a prompt in these states. In other states, the agent takes it at once. */
const HINTS: Partial<Record<Agent['state'], string>> = {
  blocked: 'It asks something: answer it in the terminal',
  working: 'It is working: the prompt waits for its turn',
  starting: 'It is starting: the prompt waits for its turn',
  asleep: 'It sleeps: a prompt wakes it',
};

/** The field and its button. Enter sends the prompt, Shift-Enter begins a new line. */
export function PromptBox({ agent: { name, state } }: { agent: Agent }) {
  const label = `prompt for ${name}`;
  const draft = draftOf(label);
  const text = draft.value;
  const title = `prompt ${name}`;
  const isWaiting = underWay.value.has(title);
  const isOff = isWaiting || state === 'blocked' || text.trim() === '';
  const send = async (): Promise<void> => {
    if (isOff) return;
    if (await perform(title, () => client.promptAgent(name, { text, queue: true }))) draft.value = '';
  };
  return (
    <div class="prompt-box">
      <textarea
        class="field"
        rows={1}
        aria-label={label}
        placeholder="Prompt"
        readOnly={isWaiting}
        value={text}
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
        {HINTS[state] ?? (isWaiting ? 'typing' : '')}
      </span>
      <Button text="send" label={`send the prompt to ${name}`} isOff={isOff} onPress={() => void send()} />
    </div>
  );
}
