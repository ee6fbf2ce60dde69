// The client's records are what the API's document says, field by field, and misuse does not compile. `tsc` checks this file; it
// is never run.
import type { z } from '../../src/adapters/zod.ts';
import type { Client } from '../../src/client/create_client.ts';
import type * as records from '../../src/client/records.ts';
import type { ANSWERS } from '../../src/front/api/answers.ts';
import type { CLOUD_SHAPES } from '../../src/front/api/shapes_cloud.ts';

type CloudAnswer<K extends keyof typeof CLOUD_SHAPES.answers> = z.infer<(typeof CLOUD_SHAPES.answers)[K]>;
type Answer<K extends keyof typeof ANSWERS> = z.infer<(typeof ANSWERS)[K]>;
/** true when both have the same fields and every `R` would do as an `A`. */
type Fits<R, A> = [keyof R, keyof A] extends [keyof A, keyof R] ? (R extends A ? true : false) : false;

export const FIT: [
  Fits<records.Service, Answer<'Service'>>,
  Fits<records.ServiceDetail, Answer<'ServiceDetail'>>,
  Fits<records.StartResult, Answer<'Started'>>,
  Fits<records.StopResult, Answer<'Stopped'>>,
  Fits<records.Removed, Answer<'Removed'>>,
  Fits<records.Explanation, Answer<'Explanation'>>,
  Fits<records.Logs, Answer<'Logs'>>,
  Fits<records.Resolution, Answer<'Resolution'>>,
  Fits<records.Group, Answer<'GroupList'>['groups'][number]>,
  Fits<records.GroupStarted, Answer<'GroupStarted'>>,
  Fits<records.GroupStopped, Answer<'GroupStopped'>>,
  Fits<records.Agent, Answer<'AgentList'>['agents'][number]>,
  Fits<records.SpunUp, Answer<'SpunUp'>>,
  Fits<records.AgentRemoved, Answer<'AgentRemoved'>>,
  Fits<records.Version, Answer<'Version'>>,
  Fits<records.PastEvent, Answer<'EventList'>['events'][number]>,
  Fits<records.Cluster, CloudAnswer<'ClusterList'>[number]>,
  Fits<records.ClusterDetail, CloudAnswer<'ClusterDetail'>>,
  Fits<records.Workload, CloudAnswer<'WorkloadList'>[number]>,
  Fits<records.Tether, CloudAnswer<'TetherList'>[number]>,
  Fits<records.AutoSleepSettings, CloudAnswer<'AutoSleep'>>,
] = [
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
];

export async function misuse(berth: Client): Promise<void> {
  // @ts-expect-error a registration without its command
  await berth.register({ name: 'web', port: 3000 });
  // @ts-expect-error no such policy
  await berth.register({ name: 'web', port: 3000, cmd: 'x', restart: 'sometimes' });
  // @ts-expect-error a duration is a number of milliseconds
  await berth.start('web', { timeout: '30s' });
  // @ts-expect-error no such type of event
  berth.events({ types: ['service.exploded'] });
  for await (const event of berth.events()) {
    // @ts-expect-error only some events have a pid
    event.data.pid;
    if (event.type === 'service.started') event.data.pid.toFixed();
  }
}
