// Actions on every service that the table shows, that is marked, or that a section lists. All but those on a
// whole group ask a person first.
import { signal } from '@preact/signals';
import type { Service } from '../../client/browser.ts';
import { countText } from '../../presentation/format.ts';
import { isOfAgents, type Section, takesBulkActions } from '../../presentation/sections.ts';
import { actOn, actOnGroup, type GroupAction } from '../state/actions.ts';
import { Button } from './button.tsx';
import { ModalDialog } from './modal_dialog.tsx';

const ACTIONS = ['start', 'stop', 'restart'] as const;
export type BulkAction = (typeof ACTIONS)[number];

/** What the actions are on; never both, because an agent may be working. */
const KINDS = { service: takesBulkActions, agent: isOfAgents };
type Kind = keyof typeof KINDS;

const NAMES_SHOWN = 6;

const isAsking = signal(false);
const asked = signal<{ action: BulkAction; kind: Kind; names: readonly string[] }>({
  action: 'start',
  kind: 'service',
  names: [],
});

/** The names of the services or agents on which `action` has an effect. */
const namesFor = (action: BulkAction, services: readonly Service[], kind: Kind = 'service'): string[] =>
  services
    .filter((service) => KINDS[kind](service) && (action === 'start') === (service.pid === undefined))
    .map(({ name }) => name);

/** Asks whether to perform `action` on the services or agents on which it has an effect, if there are any. */
export function askToAct(action: BulkAction, services: readonly Service[], kind: Kind = 'service'): void {
  const names = namesFor(action, services, kind);
  if (names.length === 0) return;
  asked.value = { action, kind, names };
  isAsking.value = true;
}

interface SectionAction {
  action: GroupAction;
  label: string;
  isOff: boolean;
  run: () => void;
}

/**
 * Which of `actions` there are for a section: on its whole group or, after a question, on the agents that it
 * lists. The group of all agents would take in those of other sections.
 */
export function sectionActions(
  { title, group, services }: Section,
  actions: readonly GroupAction[],
): SectionAction[] {
  if (group !== null)
    return actions.map((action) => ({
      action,
      label: `${action} all of ${title}`,
      isOff: false,
      run: () => void actOnGroup(action, group),
    }));
  if (!services.every(isOfAgents)) return [];
  const bulkActions = actions.flatMap((action) => ACTIONS.find((one) => one === action) ?? []);
  return bulkActions.map((action) => ({
    action,
    label: `${action} all shown of ${title}`,
    isOff: namesFor(action, services, 'agent').length === 0,
    run: () => askToAct(action, services, 'agent'),
  }));
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
  const { action, kind, names } = asked.value;
  const what = `${action} ${countText(names.length, kind)}`;
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
        {kind === 'agent' && action !== 'start' && '. Work under way ends.'}
      </p>
      <div class="actions">
        <Button kind="main" text={what} label={what} onPress={() => answer(true)} />
        <Button text="cancel" label="cancel" onPress={() => answer(false)} />
      </div>
    </ModalDialog>
  );
}
