// Which dialogs are open.
import { signal } from '@preact/signals';

/** Whether the palette of names and actions is open. */
export const paletteIsOpen = signal(false);
/** Whether the list of keys is open. */
export const helpIsOpen = signal(false);
