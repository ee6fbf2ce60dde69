// Buttons: an icon, a word, or both.
import { Icon, type IconName } from './icon.tsx';

interface ButtonProps {
  /** What it does, for everybody who does not see its icon. */
  label: string;
  icon?: IconName;
  /** The word on it; absent: the icon alone. */
  text?: string;
  onPress: () => void;
  /** It has no effect now. It keeps the focus, which `disabled` would lose. */
  isOff?: boolean;
  /** Of a switch. */
  isPressed?: boolean;
  /** The key that does the same. */
  keyHint?: string;
  kind?: 'normal' | 'main' | 'quiet' | 'danger';
}

/** A button with a name, and its key in the tooltip. */
export function Button(props: ButtonProps) {
  const { label, icon, text, onPress, isOff = false, isPressed, keyHint, kind = 'normal' } = props;
  return (
    <button
      type="button"
      class="button"
      data-kind={kind}
      data-square={text === undefined}
      aria-label={label}
      aria-disabled={isOff}
      aria-pressed={isPressed}
      title={keyHint === undefined ? label : `${label} (${keyHint})`}
      onClick={(event) => {
        event.stopPropagation();
        if (!isOff) onPress();
      }}
    >
      {icon && <Icon name={icon} />}
      {text !== undefined && <span>{text}</span>}
    </button>
  );
}
