// The services that a person has marked, to act on all of them.
import { computed, signal } from '@preact/signals';
import type { Service } from '../../client/browser.ts';
import { takesBulkActions } from '../../presentation/sections.ts';
import { serviceByName } from './daemon.ts';

/** Whether rows have boxes to mark them. */
export const isMarking = signal(false);
const names = signal<ReadonlySet<string>>(new Set());
/** The service marked last, from which a range begins. */
let lastMarked = '';

const isMarkable = (name: string): boolean => {
  const service = serviceByName.peek().get(name);
  return service !== undefined && takesBulkActions(service);
};

/** The marked services that are registered. */
export const markedServices = computed((): readonly Service[] =>
  [...names.value].flatMap((name) => serviceByName.value.get(name) ?? []),
);

/** Whether a service is marked. */
export const isMarked = (name: string): boolean => names.value.has(name);

/** Marks services, in addition to those that are marked. */
export function mark(added: readonly string[]): void {
  isMarking.value = true;
  names.value = new Set([...names.peek(), ...added.filter(isMarkable)]);
  lastMarked = added.at(-1) ?? lastMarked;
}

/** Marks a service, or unmarks a marked one. */
export function switchMark(name: string): void {
  if (names.peek().has(name)) names.value = new Set([...names.peek()].filter((one) => one !== name));
  else mark([name]);
}

/** Marks the services from the one marked last to `name`, in the order of `shown`. */
export function markThrough(name: string, shown: readonly string[]): void {
  const [from, to] = [shown.indexOf(lastMarked), shown.indexOf(name)];
  if (from < 0 || to < 0) mark([name]);
  else mark(from < to ? shown.slice(from, to + 1) : shown.slice(to, from + 1).reverse());
}

/** Unmarks all services, and removes the boxes. */
export function endMarking(): void {
  isMarking.value = false;
  names.value = new Set();
}
