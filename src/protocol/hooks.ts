// The hooks of a stack by name. The page loads this too, so it imports nothing of Node.

/** The tasks that are a stack's hooks, by their short names: docs/reference.md "Hooks". */
export const HOOKS = { create: 'hook-create', remove: 'hook-remove' } as const;

/** Whether the service called `service` in its stack is a hook. */
export const isHook = (service: string | null): boolean =>
  service === HOOKS.create || service === HOOKS.remove;
