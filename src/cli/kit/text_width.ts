// How wide text is on a terminal. No other file imports fast-string-truncated-width.
import measureText from 'fast-string-truncated-width';

const ELLIPSIS = '…';

/** The width of `text` in terminal columns: two for a wide character or an emoji. */
export const displayWidth = (text: string): number => measureText(text).width;

/** The beginning of `text` that fits in `width` columns. */
export function cutText(text: string, width: number): string {
  if (width <= 0) return '';
  const { index, truncated } = measureText(text, { limit: width, ellipsis: '' });
  if (!truncated) return text;
  let cut = text.slice(0, index);
  // The library does not count the character before its cut in some cases, such as a lone symbol.
  while (displayWidth(cut) > width) cut = cut.slice(0, -1);
  // It may also cut a surrogate pair in two.
  return cut.replace(/[\ud800-\udbff]$/, '');
}

/** `text`, or its beginning with an ellipsis at the end, in `width` columns. */
export function truncateText(text: string, width: number): string {
  if (width <= 0) return '';
  return displayWidth(text) <= width ? text : cutText(text, width - 1) + ELLIPSIS;
}

/**
 * `text`, or its beginning and end with an ellipsis between them, in `width` columns: for names, which often
 * differ only at the end.
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
