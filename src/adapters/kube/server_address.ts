// The address of an API server in the one form in which addresses are stored and compared.

/** The address without a trailing slash and a default port; `text` itself if it is no URL. */
export function serverAddress(text: string): string {
  if (!URL.canParse(text)) return text;
  const { origin, pathname } = new URL(text);
  return origin + pathname.replace(/\/+$/, '');
}
