// A dialog that has the keyboard to itself while it is open.
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface ModalDialogProps {
  /** Whether it is open. It closes itself with Escape. */
  isOpen: Signal<boolean>;
  class: string;
  /** Its accessible name. */
  label: string;
  children: ComponentChildren;
}

function OpenDialog({ isOpen, class: classes, label, children }: ModalDialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  // Before the next key: an effect after the paint would leave that key to the page.
  useLayoutEffect(() => box.current?.showModal(), []);
  const close = (): void => {
    isOpen.value = false;
  };
  // `cancel` comes with the key; `close` follows in a task of its own, before which other keys may come.
  return (
    <dialog ref={box} class={classes} aria-label={label} onCancel={close} onClose={close}>
      {children}
    </dialog>
  );
}

/** The dialog, while it is open. */
export const ModalDialog = (props: ModalDialogProps) =>
  props.isOpen.value ? <OpenDialog {...props} /> : null;
