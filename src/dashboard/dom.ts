/** Creates an element that contains `text`. */
export function createTextElement<K extends keyof HTMLElementTagNameMap>(
  kind: K,
  text = '',
): HTMLElementTagNameMap[K] {
  const created = document.createElement(kind);
  created.textContent = text;
  return created;
}
