// Text for prompts, with all that a terminal or a program in it may misread.
const PARTS = ['line one\n', '\t"quo\'tes" `$(x)` \\n', '😀 é \u202e', '[201~ \\x1b[201~ ^[[201~', '\n\n'];

/** Text of `length` characters (UTF-16) that neither begins nor ends with a space. */
export function trickyText(length: number): string {
  let text = '';
  for (let index = 0; text.length < length; index += 1) text += PARTS[index % PARTS.length];
  // Not in the middle of a pair.
  return `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '.')}x`;
}
