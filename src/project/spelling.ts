// Suggests known words for misspelled keys and names.

/** The number of edits (insert, delete, replace, swap of neighbours) from `a` to `b`. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      const edits = [(row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1)];
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits.push((before[j - 2] ?? 0) + 1);
      next.push(Math.min(...edits));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The word of `known` nearest to the unknown `word`; undefined if none is near. */
export function nearestWord(word: string, known: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let least = limit + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (edits < least) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}

/** `; did you mean port?`, or '' if no known word is near. */
export function suggestion(word: string, known: Iterable<string>): string {
  const near = nearestWord(word, known);
  return near === undefined ? '' : `; did you mean ${near}?`;
}
