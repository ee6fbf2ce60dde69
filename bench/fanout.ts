// Event streams of the whole daemon: registrations go to disk and to the journal, and each becomes an event
// for a thousand subscribers. The floor is a bare uWebSockets.js server that writes the same bytes at the
// same requests.
import { type BareProcess, withBareProcess } from './kit/bare_client.ts';
import { type DaemonRequester, daemonRequester, withDaemon } from './kit/daemon.ts';
import { type Subscriber, subscribe } from './kit/event_subscribers.ts';
import { type Benchmark, compare, type Row } from './kit/harness.ts';

const SUBSCRIBERS = 1_000;
const EVENTS = 1_000;
const FRAME = 'id: 1000\nevent: service.registered\ndata: {"name":"*","port":14567,"group":"bench"}\n\n';

/**
 * Checks that every event came once and in order; throws otherwise. `consecutive`: the ids have no gaps
 * either.
 */
function check(subscribers: readonly Subscriber[], consecutive: boolean): void {
  for (const subscriber of subscribers) {
    const ids = [...subscriber.text().matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    if (ids.length !== EVENTS) throw new Error(`${ids.length} events of ${EVENTS}`);
    const first = ids[0] ?? 0;
    if (consecutive && ids.some((id, index) => id !== first + index)) throw new Error('events out of order');
  }
}

/** Returns events delivered per second, from the first request to the last event of the last subscriber. */
async function deliver(
  port: number,
  consecutive: boolean,
  cause: (name: string, number: number) => Promise<unknown>,
): Promise<number> {
  const subscribers = await Promise.all(
    Array.from({ length: SUBSCRIBERS }, () => subscribe(port, '/v1/events?types=service.registered')),
  );
  try {
    const complete = subscribers.map((subscriber) => subscriber.until('"name":"last"'));
    const causes = async (): Promise<void> => {
      await Promise.all(Array.from({ length: EVENTS - 1 }, (_, number) => cause(`svc-${number}`, number)));
      await cause('last', EVENTS);
    };
    const began = performance.now();
    await Promise.all([causes(), ...complete]);
    const seconds = (performance.now() - began) / 1_000;
    check(subscribers, consecutive);
    return (SUBSCRIBERS * EVENTS) / seconds;
  } finally {
    for (const subscriber of subscribers) subscriber.end();
  }
}

async function rowOf(
  bare: BareProcess,
  { ask, port }: { ask: DaemonRequester['ask']; port: number },
): Promise<Row> {
  const barePort = await bare.ask('serve', { body: '{}', frame: FRAME });
  const plain = daemonRequester(barePort);
  let turn = 0;
  try {
    return await compare(`${SUBSCRIBERS} subscribers, ${EVENTS} events`, 'events/s', {
      floor: () => deliver(barePort, false, (name) => plain.ask('POST', `/${name}`)),
      subject: () => {
        turn += 1;
        return deliver(port, true, (name, number) =>
          ask('POST', '/v1/services', {
            name,
            port: 14_000 + number,
            group: 'bench',
            cwd: '/tmp',
            cmd: `exec sleep ${turn}`,
          }),
        );
      },
      turns: 5,
    });
  } finally {
    plain.close();
  }
}

export const fanout: Benchmark = {
  name: 'fanout',
  question:
    'How many events does the whole daemon deliver, next to a bare loop of writes that takes together ' +
    'what comes together?',
  run: () => withBareProcess((bare) => withDaemon(async (daemon) => [await rowOf(bare, daemon)])),
};
