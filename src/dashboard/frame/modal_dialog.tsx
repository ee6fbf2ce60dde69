// A modal dialog, which gets all keys while it is open.
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface ModalDialogProps {
  /** Whether it is open. Escape closes it. */
  isOpen: Signal<boolean>;
  class: string;
  /** Its accessible name. */
  label: string;
  children: ComponentChildren;
}

function OpenDialog({ isOpen, class: classes, label, children }: ModalDialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  // A layout effect opens it before the next key. An effect after the paint would leave that key to the page.
  useLayoutEffect(() => box.current?.showModal(), []);
  const close = (): void => {
    isOpen.value = false;
  };
  // `cancel` fires with the key. `close` fires in a later task, and other keys may arrive before it.
  return (
    <dialog ref={box} class={classes} aria-label={label} onCancel={close} onClose={close}>
      {children}
    </dialog>
  );
}

/** The dialog, while it is open. */
export const ModalDialog = (props: ModalDialogProps) =>
  props.isOpen.value ? <OpenDialog {...props} /> : null;
