// The actions that ask a person first, because they interrupt something, and with what words.

/** What can be done to a service, an agent, a group or a workload. */
export type AskedAction = 'start' | 'stop' | 'restart' | 'sleep' | 'wake' | 'remove';

export interface AskedTarget {
  kind: 'service' | 'agent' | 'group' | 'workload';
  /** The name to show. */
  label: string;
}

/** The confirmation to ask for before an action; null if it needs none. */
export function questionBefore(action: AskedAction, { kind, label }: AskedTarget): string | null {
  if (action === 'remove') return `Stop ${label} and remove it with its logs?`;
  if (action === 'start' || action === 'wake' || kind === 'service') return null;
  if (kind === 'agent') return action === 'sleep' ? null : `${action} ${label}? What it is doing ends.`;
  if (kind === 'workload') return `Put ${label} to sleep? It serves nobody until it is woken.`;
  return `${action} ${label}?`;
}
