// What a person has typed and not sent yet. It outlives a change of the view, in the memory of the tab only.
import { type Signal, signal } from '@preact/signals';

const drafts = new Map<string, Signal<string>>();

/** The text that was typed into the field called `label`; empty at first. */
export function draftOf(label: string): Signal<string> {
  const known = drafts.get(label);
  if (known) return known;
  const made = signal('');
  drafts.set(label, made);
  return made;
}
