// A list whose choice has an effect beyond the page. A closed list changes with every arrow key, so nothing
// happens until a button is pressed.
import { useSignal } from '@preact/signals';
import { Button } from './button.tsx';

interface ChoiceActionProps {
  /** Accessible name. */
  label: string;
  /** The present choice; it needs no button. */
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  /** On the button. */
  action: string;
  isOff?: boolean;
  onPick: (value: string) => void;
}

/** The list, and the button while another choice than the present one is shown. */
export function ChoiceAction({ label, value, options, action, isOff = false, onPick }: ChoiceActionProps) {
  const picked = useSignal<string | null>(null);
  const shown = picked.value ?? value;
  const text = options.find(([one]) => one === shown)?.[1] ?? shown;
  return (
    <>
      <select
        class="field"
        aria-label={label}
        value={shown}
        disabled={isOff}
        onChange={(event) => {
          picked.value = event.currentTarget.value;
        }}
      >
        {options.map(([one, optionText]) => (
          <option key={one} value={one}>
            {optionText}
          </option>
        ))}
      </select>
      {shown !== value && !isOff && (
        <Button
          text={action}
          label={`${action}: ${text}`}
          onPress={() => {
            picked.value = null;
            onPick(shown);
          }}
        />
      )}
    </>
  );
}
