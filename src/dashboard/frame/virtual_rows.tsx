// A long list that renders only the visible rows. All rows have the same height.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isPhone } from '../state/phone.ts';

interface VirtualRowsProps<T> {
  items: readonly T[];
  /** In pixels. */
  rowHeight: number;
  /** The same on a phone; absent: as elsewhere. */
  phoneRowHeight?: number;
  keyOf: (item: T) => string;
  row: (item: T) => ComponentChildren;
  /** Whether its rows have nothing that takes the focus, so that the list itself takes it to be scrolled. */
  isPlain?: boolean;
  /** The key of the current item, to which the list scrolls when it changes; null: none. */
  current?: string | null;
  label: string;
}

/** How many rows to render above and below the visible ones, so that scrolling shows no gap. */
const SPARE_ROWS = 8;

/** The visible rows of `items`, in a scrolling box that fills its parent. */
export function VirtualRows<T>(props: VirtualRowsProps<T>) {
  const { items, keyOf, row, current = null, label } = props;
  const rowHeight = (isPhone.value ? props.phoneRowHeight : undefined) ?? props.rowHeight;
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 900 });
  useLayoutEffect(() => {
    const { current: element } = box;
    if (!element) return undefined;
    const look = (): void => {
      const { scrollTop, clientHeight } = element;
      // Rounded to whole rows, so that scrolling by a few pixels renders nothing.
      const top = scrollTop - (scrollTop % rowHeight);
      setSeen((old) =>
        old.top === top && old.height === clientHeight ? old : { top, height: clientHeight },
      );
    };
    look();
    element.addEventListener('scroll', look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => {
      element.removeEventListener('scroll', look);
      sizes.disconnect();
    };
  }, [rowHeight]);
  useLayoutEffect(() => {
    const at = current === null ? -1 : items.findIndex((item) => keyOf(item) === current);
    if (at < 0 || !box.current) return;
    const { scrollTop, clientHeight } = box.current;
    if (at * rowHeight < scrollTop) box.current.scrollTop = at * rowHeight;
    else if ((at + 1) * rowHeight > scrollTop + clientHeight)
      box.current.scrollTop = (at + 1) * rowHeight - clientHeight;
  }, [current]);
  const first = Math.max(0, Math.floor(seen.top / rowHeight) - SPARE_ROWS);
  const last = Math.ceil((seen.top + seen.height) / rowHeight) + SPARE_ROWS;
  return (
    <div class="rows" ref={box} tabIndex={props.isPlain ? 0 : undefined}>
      <ul class="rows-inner" aria-label={label} style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, index) => (
          <li
            key={keyOf(item)}
            style={{ transform: `translateY(${(first + index) * rowHeight}px)`, height: `${rowHeight}px` }}
          >
            {row(item)}
          </li>
        ))}
      </ul>
    </div>
  );
}
