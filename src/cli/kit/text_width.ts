// How wide text is on a terminal. No other file imports fast-string-truncated-width.
import measureText from 'fast-string-truncated-width';

const ELLIPSIS = '…';

/** Columns of a terminal that `text` takes: two for a wide character or an emoji. */
export const displayWidth = (text: string): number => measureText(text).width;

/** As much of `text` as takes at most `width` columns. */
export function cutText(text: string, width: number): string {
  if (width <= 0) return '';
  const { index, truncated } = measureText(text, { limit: width, ellipsis: '' });
  if (!truncated) return text;
  let cut = text.slice(0, index);
  // The library leaves out of its sum what stands before the place where it cuts, such as a lone symbol.
  while (displayWidth(cut) > width) cut = cut.slice(0, -1);
  // It may also count a character outside of the first plane as one unit.
  return cut.replace(/[\ud800-\udbff]$/, '');
}

/** `text`, or as much of it as takes `width` columns with an ellipsis at its end. */
export function truncateText(text: string, width: number): string {
  if (width <= 0) return '';
  return displayWidth(text) <= width ? text : cutText(text, width - 1) + ELLIPSIS;
}

/**
 * `text`, or its beginning and end with an ellipsis between them, in `width` columns: for names, which often
 * differ in their ends alone.
 */
export function truncateMiddle(text: string, width: number): string {
  if (width <= 0) return '';
  if (displayWidth(text) <= width) return text;
  const head = cutText(text, Math.floor(width / 2));
  const room = width - 1 - displayWidth(head);
  const characters = Array.from(text.slice(head.length));
  while (displayWidth(characters.join('')) > room) characters.shift();
  return head + ELLIPSIS + characters.join('');
}
