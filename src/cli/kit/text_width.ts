// How wide text is on a terminal. No other file imports fast-string-truncated-width.
import measureText from 'fast-string-truncated-width';

const ELLIPSIS = '…';

/** Columns of a terminal that `text` takes: two for a wide character or an emoji. */
export const displayWidth = (text: string): number => measureText(text).width;

/** `text`, or as much of it as takes `width` columns with an ellipsis at its end. */
export function truncateText(text: string, width: number): string {
  const { index, truncated } = measureText(text, { limit: width, ellipsis: ELLIPSIS, ellipsisWidth: 1 });
  return truncated ? text.slice(0, index) + ELLIPSIS : text;
}
