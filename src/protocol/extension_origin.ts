const EXTENSION_ORIGIN = /^chrome-extension:\/\/([A-Za-z0-9-][A-Za-z0-9.-]*)$/;

/**
 * Whether `origin`, the value of an Origin header, belongs to an allowed browser extension:
 * docs/reference.md "Checks on every request", "Gateway". `allowedIds` are compared as written; if empty, any
 * extension is allowed.
 */
export function isAllowedExtension(origin: string, allowedIds: readonly string[]): boolean {
  const id = EXTENSION_ORIGIN.exec(origin)?.[1];
  return id !== undefined && (allowedIds.length === 0 || allowedIds.includes(id));
}
