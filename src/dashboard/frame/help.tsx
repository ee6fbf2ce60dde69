// The list of keys.
import { Button } from './button.tsx';
import { helpIsOpen } from './dialogs.ts';
import { KEYS } from './keyboard.ts';
import { ModalDialog } from './modal_dialog.tsx';

const close = (): void => {
  helpIsOpen.value = false;
};

/** The help, while it is open. */
export const Help = () => (
  <ModalDialog isOpen={helpIsOpen} class="dialog" label="Keys">
    <div class="notice-head">
      <h1>Keys</h1>
      <Button kind="quiet" icon="close" label="close the list of keys" onPress={close} />
    </div>
    <dl class="keys">
      {KEYS.map(([keys, meaning]) => (
        <div key={keys}>
          <dt>
            <kbd>{keys}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </ModalDialog>
);
