/** An element with text in it. */
export function createTextElement<K extends keyof HTMLElementTagNameMap>(
  kind: K,
  text = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}
