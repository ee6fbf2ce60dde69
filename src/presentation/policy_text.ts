// Policies of workloads as text: docs/reference.md "Policies".
import type { Policy, PolicyPreview, Workload } from '../client/records.ts';
import { localTime } from '../protocol/timestamps.ts';
import { countText, spanText } from './format.ts';

/** Which workloads a policy selects. */
export const policySelects = ({ selector }: Policy): string =>
  [
    ...(selector.cluster_ids ? [`clusters ${selector.cluster_ids.join(',')}`] : []),
    ...(selector.namespaces ? [`namespaces ${selector.namespaces.join(',')}`] : []),
    ...(selector.labels === undefined ? [] : [selector.labels]),
  ].join('; ');

/** In which windows a policy puts to sleep, and what of them does not count; '' for none. */
export const policyWindows = ({ windows, timezone, exceptions, awake_until }: Policy): string =>
  [
    ...(windows ? [`${windows.join(', ')} ${timezone}`] : []),
    ...(exceptions ? [countText(exceptions.length, 'exception')] : []),
    ...(awake_until === null ? [] : [`awake until ${localTime(Date.parse(awake_until))}`]),
  ].join('; ');

type Governed = Pick<Workload, 'policy'>;
type Switch = PolicyPreview['workloads'][number]['switches'][number];

/** What decides on the sleep of a workload, such as `policy:nights`; '' for only its own auto-sleep. */
export const whoDecides = ({ policy }: Governed): string =>
  policy?.excluded_by ?? policy?.schedule ?? policy?.idle ?? '';

/** An upcoming switch: `sleeps in 3h 12m`. `now`: epoch milliseconds. */
export const switchText = ({ at, to }: Switch, now: number): string =>
  `${to === 'asleep' ? 'sleeps' : 'wakes'} in ${spanText(Date.parse(at) - now)}`;

/** The next switch of a workload, or why there is none; '' if no policy switches it. */
export function nextSwitchText({ policy }: Governed, now: number): string {
  if (!policy) return '';
  if (policy.excluded_by !== null) return 'excluded';
  if (policy.next_switch) return switchText(policy.next_switch, now);
  const { idle_timeout_minutes: minutes } = policy;
  return minutes === null ? '' : `sleeps after ${spanText(minutes * 60_000)} unused`;
}
