// How wide text is on a terminal. No other file imports string-width.
import stringWidth from 'string-width';

/** Columns of a terminal that `text` takes: two for a wide character or an emoji. */
export const displayWidth = (text: string): number =>
  /^[\x20-\x7e]*$/.test(text) ? text.length : stringWidth(text);

const ELLIPSIS = '…';

/** `text`, or as much of it as takes `width` columns with an ellipsis at its end. */
export function truncateText(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (displayWidth(kept + segment) > width - 1) break;
    kept += segment;
  }
  return kept + ELLIPSIS;
}
