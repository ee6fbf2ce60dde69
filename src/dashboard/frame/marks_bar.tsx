// Marks on services: the boxes that rows have, and the bar with what can be done to all marked ones.
import { endMarking, isMarked, isMarking, markedServices, markThrough, switchMark } from '../state/marks.ts';
import { BulkActions } from './bulk_actions.tsx';
import { Button } from './button.tsx';

/** Marks or unmarks a clicked service; with Shift, all from the one marked last, in the order of `shown`. */
export function markByClick(event: MouseEvent, name: string, shown: readonly string[]): void {
  if (event.shiftKey) markThrough(name, shown);
  else switchMark(name);
}

/** The button that shows boxes to mark services, and removes them. */
export const MarkButton = () => (
  <Button
    icon="mark"
    text="mark"
    label="mark services"
    keyHint="Space"
    isPressed={isMarking.value}
    onPress={() => {
      if (isMarking.peek()) endMarking();
      else isMarking.value = true;
    }}
  />
);

/** The box of a row in a table, while services are marked. */
export function MarkBox({ name, shown }: { name: string; shown: readonly string[] }) {
  return (
    <input
      type="checkbox"
      aria-label={`mark ${name}`}
      checked={isMarked(name)}
      onClick={(event) => markByClick(event, name, shown)}
    />
  );
}

/** The bar below the list, while services are marked. */
export function MarksBar() {
  if (!isMarking.value) return null;
  const services = markedServices.value;
  return (
    <div class="marks-bar" role="toolbar" aria-label="marked services">
      <span class="number" role="status">
        {services.length} marked
      </span>
      <BulkActions services={services} which="marked" />
      <Button kind="quiet" icon="close" label="unmark all" keyHint="Esc" onPress={endMarking} />
    </div>
  );
}
