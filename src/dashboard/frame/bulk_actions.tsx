// Actions on every service that the table shows, or that is marked, after a person has confirmed them.
import { signal } from '@preact/signals';
import type { Service } from '../../client/browser.ts';
import { countText } from '../../presentation/format.ts';
import { takesBulkActions } from '../../presentation/sections.ts';
import { actOn } from '../state/actions.ts';
import { Button } from './button.tsx';
import { ModalDialog } from './modal_dialog.tsx';

const ACTIONS = ['start', 'stop', 'restart'] as const;
export type BulkAction = (typeof ACTIONS)[number];

const NAMES_SHOWN = 6;

const isAsking = signal(false);
const asked = signal<{ action: BulkAction; names: readonly string[] }>({ action: 'start', names: [] });

/** The names of the services on which `action` has an effect. */
const namesFor = (action: BulkAction, services: readonly Service[]): string[] =>
  services
    .filter((service) => takesBulkActions(service) && (action === 'start') === (service.pid === undefined))
    .map(({ name }) => name);

/** Asks whether to perform `action` on the services on which it has an effect, if there are any. */
export function askToAct(action: BulkAction, services: readonly Service[]): void {
  const names = namesFor(action, services);
  if (names.length === 0) return;
  asked.value = { action, names };
  isAsking.value = true;
}

interface BulkActionsProps {
  services: readonly Service[];
  which: 'shown' | 'marked';
}

/** The buttons of the actions. */
export function BulkActions({ services, which }: BulkActionsProps) {
  return (
    <span class="cell-actions">
      {ACTIONS.map((action) => {
        const { length } = namesFor(action, services);
        return (
          <Button
            key={action}
            kind="quiet"
            icon={action}
            label={`${action} ${countText(length, `${which} service`)}`}
            isOff={length === 0}
            onPress={() => askToAct(action, services)}
          />
        );
      })}
    </span>
  );
}

/** The confirmation dialog, while it is open. */
export function BulkQuestion() {
  const { action, names } = asked.value;
  const what = `${action} ${countText(names.length, 'service')}`;
  const rest = names.length - NAMES_SHOWN;
  const answer = (isYes: boolean): void => {
    isAsking.value = false;
    if (isYes) for (const name of names) void actOn(action, name);
  };
  return (
    <ModalDialog isOpen={isAsking} class="dialog" label={what}>
      <h1>{`${what[0]?.toUpperCase()}${what.slice(1)}?`}</h1>
      <p class="soft">
        {names.slice(0, NAMES_SHOWN).join(', ')}
        {rest > 0 && ` and ${rest} more`}
      </p>
      <div class="actions">
        <Button kind="main" text={what} label={what} onPress={() => answer(true)} />
        <Button text="cancel" label="cancel" onPress={() => answer(false)} />
      </div>
    </ModalDialog>
  );
}
