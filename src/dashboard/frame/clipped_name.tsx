// Shortens a long name in the middle, because names often differ only at their end.
const TAIL_CHARACTERS = 8;
const SHORT_CHARACTERS = 20;

/** `name` in the available width. */
export function ClippedName({ name }: { name: string }) {
  if (name.length <= SHORT_CHARACTERS) return <>{name}</>;
  return (
    <span class="clipped">
      <span class="clipped-head">{name.slice(0, -TAIL_CHARACTERS)}</span>
      <span>{name.slice(-TAIL_CHARACTERS)}</span>
    </span>
  );
}
