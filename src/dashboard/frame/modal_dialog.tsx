// A modal dialog, which gets all keys while it is open.
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface OpenDialogProps {
  class: string;
  /** Its accessible name. */
  label: string;
  children: ComponentChildren;
  /** Closes it, on Escape. Absent: it stays until the page removes it. */
  close?: () => void;
}

/** A dialog that is open for as long as it is rendered. */
export function OpenDialog({ class: classes, label, children, close }: OpenDialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  // A layout effect opens it before the next key. An effect after the paint would leave that key to the page.
  useLayoutEffect(() => box.current?.showModal(), []);
  // A browser may close it all the same, as with the back button of a phone.
  const stay = (): void => box.current?.showModal();
  // `cancel` fires with the key. `close` fires in a later task, and other keys may arrive before it.
  return (
    <dialog
      ref={box}
      class={classes}
      aria-label={label}
      onCancel={close ?? ((event) => event.preventDefault())}
      onClose={close ?? stay}
    >
      {children}
    </dialog>
  );
}

interface ModalDialogProps extends Omit<OpenDialogProps, 'close'> {
  /** Whether it is open. Escape closes it. */
  isOpen: Signal<boolean>;
}

/** The dialog, while it is open. */
export function ModalDialog({ isOpen, ...rest }: ModalDialogProps) {
  const close = (): void => {
    isOpen.value = false;
  };
  return isOpen.value ? <OpenDialog {...rest} close={close} /> : null;
}
