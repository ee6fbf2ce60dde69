// A name that is cut in the middle where it is too long: what tells names apart is often at their end.
const TAIL_CHARACTERS = 8;
const SHORT_CHARACTERS = 20;

/** `name` in as much room as there is. */
export function ClippedName({ name }: { name: string }) {
  if (name.length <= SHORT_CHARACTERS) return <>{name}</>;
  return (
    <span class="clipped">
      <span class="clipped-head">{name.slice(0, -TAIL_CHARACTERS)}</span>
      <span>{name.slice(-TAIL_CHARACTERS)}</span>
    </span>
  );
}
