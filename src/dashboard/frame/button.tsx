// A button with an icon, a text, or both.
import { Icon, type IconName } from './icon.tsx';

interface ButtonProps {
  /** Its accessible name, which says what it does. */
  label: string;
  icon?: IconName;
  /** The text on it; absent: only the icon. */
  text?: string;
  onPress: () => void;
  /** Whether it has no effect now. It keeps the focus, which `disabled` would lose. */
  isOff?: boolean;
  /** For a toggle button: whether it is on. */
  isPressed?: boolean;
  /** In a dialog: whether it has the focus when the dialog opens. */
  hasFirstFocus?: boolean;
  /** The key that does the same. */
  keyHint?: string;
  kind?: 'normal' | 'main' | 'quiet' | 'danger';
}

/** A button with an accessible name, and its key in the tooltip. */
export function Button(props: ButtonProps) {
  const {
    label,
    icon,
    text,
    onPress,
    isOff = false,
    isPressed,
    hasFirstFocus,
    keyHint,
    kind = 'normal',
  } = props;
  return (
    <button
      type="button"
      class="button"
      data-kind={kind}
      data-square={text === undefined}
      aria-label={label}
      aria-disabled={isOff}
      aria-pressed={isPressed}
      autofocus={hasFirstFocus}
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
