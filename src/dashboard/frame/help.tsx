// The list of keys.
import { useEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { helpIsOpen } from './dialogs.ts';
import { KEYS } from './keyboard.ts';

function HelpDialog() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  const close = (): void => {
    helpIsOpen.value = false;
  };
  return (
    <dialog ref={box} class="dialog" aria-labelledby="help-title" onClose={close}>
      <div class="notice-head">
        <h1 id="help-title">Keys</h1>
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
    </dialog>
  );
}

/** The help, while it is open. */
export const Help = () => (helpIsOpen.value ? <HelpDialog /> : null);
