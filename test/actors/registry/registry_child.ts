// A program for registry.test.ts: registers 500 services at once and prints each one whose reply came.
import { writeSync } from 'node:fs';
import { portsActor } from '../../../src/actors/ports/ports.ts';
import { registryActor } from '../../../src/actors/registry/registry.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { actor } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { input } from '../../kit/service_inputs.ts';
import { untypedNode } from '../../kit/untyped_node.ts';

const store = openStore(process.argv[2] ?? '');
const node = untypedNode({ name: 'test', clock: systemClock, nodeOf: () => 'test' });
const nothing = actor('nothing', () => ({
  specs: () => null,
  append: () => ({ lastId: 0 }),
  changed: () => null,
}));
for (const address of ['views', 'events']) await node.start(address, nothing, null);
node.family('service:', nothing, () => null);
await node.start('ports', portsActor, { store, watched: new Map() });
const ref = await node.start('registry', registryActor, {
  store,
  ports: { service: [3100, 3999], agent: [8100, 8200] },
  bootedAt: 0,
  report: () => {},
  leaveOut: () => {},
});
for (let round = 0; ; round += 1) {
  await Promise.all(
    Array.from({ length: 500 }, async (_, n) => {
      const { stored } = await ref.ask('register', {
        input: input(`s${n}`, { port: 0, cmd: `echo ${round}` }),
      });
      writeSync(1, `s${n} ${stored.spec.port} ${round}\n`);
    }),
  );
}
