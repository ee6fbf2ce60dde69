// An action on a service, an agent or a workload. One that interrupts an agent or a workload asks first, as
// `berth ui` does.
import { signal } from '@preact/signals';
import type { Workload } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { type AskedAction, type AskedTarget, questionBefore } from '../../presentation/questions.ts';
import { actOn, type ServiceAction } from '../state/actions.ts';
import { actOnWorkload, type WorkloadAction } from '../state/cloud_data.ts';
import { isAgent } from '../state/sections.ts';
import { Button } from './button.tsx';
import { ModalDialog } from './modal_dialog.tsx';

const isAsking = signal(false);
const asked = signal({ question: '', what: '', run: (): void => {} });

function askOrRun(action: AskedAction, target: AskedTarget, run: () => void): void {
  const question = questionBefore(action, target);
  if (question === null) {
    run();
    return;
  }
  asked.value = { question, what: `${action} the ${target.kind} ${target.label}`, run };
  isAsking.value = true;
}

/** Performs `action` on the service or agent `name`, after a question if it needs one. */
export const requestAction = (action: ServiceAction, name: string): void =>
  askOrRun(
    action,
    { kind: isAgent(name) ? 'agent' : 'service', label: name },
    () => void actOn(action, name),
  );

/** Performs `action` on a workload, after a question if it needs one. */
export function requestWorkloadAction(action: WorkloadAction, workload: Workload): void {
  const label = visibleLine(`${workload.namespace}/${workload.name}`);
  askOrRun(action, { kind: 'workload', label }, () => void actOnWorkload(action, workload));
}

/** The confirmation dialog, while it is open. Space and Enter cancel, for someone who types into the list. */
export function ActionQuestion() {
  const { question, what, run } = asked.value;
  const answer = (isYes: boolean): void => {
    isAsking.value = false;
    if (isYes) run();
  };
  return (
    <ModalDialog isOpen={isAsking} class="dialog" label={what}>
      <h1>{`${question[0]?.toUpperCase()}${question.slice(1)}`}</h1>
      <div class="actions">
        <Button kind="main" text={what.split(' ', 1)[0] ?? ''} label={what} onPress={() => answer(true)} />
        <Button text="cancel" label="cancel" hasFirstFocus onPress={() => answer(false)} />
      </div>
    </ModalDialog>
  );
}
