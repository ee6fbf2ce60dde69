const EXTENSION_ORIGIN = /^chrome-extension:\/\/([A-Za-z0-9-][A-Za-z0-9.-]*)$/;

/**
 * Whether `origin`, the value of an Origin header, is that of a browser extension that may call:
 * docs/reference.md "Checks on every request", "Gateway". `allowedIds` are compared as written; where there
 * are none, any extension may.
 */
export function isAllowedExtension(origin: string, allowedIds: readonly string[]): boolean {
  const id = EXTENSION_ORIGIN.exec(origin)?.[1];
  return id !== undefined && (allowedIds.length === 0 || allowedIds.includes(id));
}
