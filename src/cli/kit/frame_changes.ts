// Draws on a terminal only what has changed.

/** The output that changes a terminal from `before` to `after`, in one synchronized update; '' if equal. */
export function frameChanges(before: readonly string[], after: readonly string[]): string {
  const changed = after.map((line, at) => (line === before[at] ? '' : `\x1b[${at + 1};1H${line}`)).join('');
  return changed === '' ? '' : `\x1b[?2026h${changed}\x1b[?2026l`;
}
