// Removes a service or an agent after a person has confirmed it.
import { useSignal } from '@preact/signals';
import { Button } from '../frame/button.tsx';
import { ModalDialog } from '../frame/modal_dialog.tsx';
import { AT_ONCE, perform, underWay } from '../state/actions.ts';
import { unfollowStart } from '../state/followed_starts.ts';
import { go, panes, shownPlace } from '../state/place.ts';
import { client } from '../state/session.ts';

interface RemoveButtonProps {
  name: string;
  what: 'service' | 'agent';
}

/** Closes the panes and the view of `name`. Another selection stays. */
function leave({ name, what }: RemoveButtonProps): void {
  const others = panes.peek().filter((pane) => pane.name !== name);
  const list = { view: what === 'agent' ? 'agents' : 'services', name: null, query: {} } as const;
  go({ panes: others, ...(shownPlace.peek().name === name ? list : {}) }, true);
}

/** The button and its confirmation dialog. */
export function RemoveButton({ name, what }: RemoveButtonProps) {
  const isAsking = useSignal(false);
  const title = `remove ${name}`;
  const remove = async (): Promise<void> => {
    isAsking.value = false;
    unfollowStart(name);
    const isTaken = await perform(title, () =>
      what === 'agent' ? client.removeAgent(name, AT_ONCE) : client.remove(name, AT_ONCE),
    );
    if (isTaken) leave({ name, what });
  };
  return (
    <>
      <Button
        icon="remove"
        text="remove"
        label={title}
        isOff={underWay.value.has(title)}
        onPress={() => {
          isAsking.value = true;
        }}
      />
      <ModalDialog isOpen={isAsking} class="dialog" label={title}>
        <h1>Remove {name}?</h1>
        <p class="soft">It is stopped, and its logs are deleted with it.</p>
        <div class="actions">
          <Button
            kind="danger"
            text="remove"
            label={`remove the ${what} ${name}`}
            onPress={() => void remove()}
          />
          <Button
            text="cancel"
            label="cancel"
            onPress={() => {
              isAsking.value = false;
            }}
          />
        </div>
      </ModalDialog>
    </>
  );
}
