// Removes a secret from others' text before it is shown to people.

/** A shorter secret might occur in ordinary words. */
const MIN_LENGTH = 8;

/** `text` without `secret`, and without a beginning of it left by a cut at the end of the text. */
export function redact(text: string, secret: string | null): string {
  if (secret === null || secret.length < MIN_LENGTH) return text;
  const whole = text.replaceAll(secret, '[removed]');
  const start = whole.lastIndexOf(secret.slice(0, MIN_LENGTH));
  return start >= 0 && secret.startsWith(whole.slice(start)) ? `${whole.slice(0, start)}[removed]` : whole;
}
