// The parameters and results of the client's methods match the shapes of the API: misuse does not compile.
// `tsc` checks this file; it never runs.

import type { z } from '../../src/adapters/zod.ts';
import type { EventList } from '../../src/api/events_shapes.ts';
import type { Client } from '../../src/client/create_client.ts';
import type * as records from '../../src/client/records.ts';

/** True when both have the same fields and every `R` is assignable to an `A`. */
type Fits<R, A> = [keyof R, keyof A] extends [keyof A, keyof R] ? (R extends A ? true : false) : false;

export const FIT: Fits<records.PastEvent, z.infer<typeof EventList>['events'][number]> = true;

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
