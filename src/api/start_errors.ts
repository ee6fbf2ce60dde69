// How a start fails that starts what it depends on first.
export const START_ERRORS = [
  'hook_refused',
  'port_in_use',
  'ready_timeout',
  'start_failed',
  'dependency_failed',
] as const;
