// Run where every outgoing connection gets the port in argv[2]: probes that port and dials it, then listens
// there.
import { createServer } from 'node:net';
import { socketProbe } from '../../src/adapters/ready_probe.ts';
import { ServiceDialer } from '../../src/adapters/service_dialer.ts';
import { systemClock } from '../../src/runtime/clock.ts';

const port = Number(process.argv[2]);
const probe = socketProbe(systemClock);
const ask = (url: string): Promise<string> =>
  new Promise((resolve) => {
    probe({ url: url.replace('PORT', String(port)) }, 10_000, ({ error }) => resolve(error ?? 'passed'));
  });

for (const url of [
  'tcp://127.0.0.1:PORT',
  'tcp://localhost:PORT',
  'http://127.0.0.1:PORT',
  'https://127.0.0.1:PORT',
])
  console.log(`${url}: ${await ask(url)}`);
const dialer = new ServiceDialer();
console.log(
  `dial: ${await dialer.dial({ port, pid: null }).then(
    () => 'connected',
    (error: Error) => error.message,
  )}`,
);
dialer.close();
const server = createServer();
server.on('error', (error: NodeJS.ErrnoException) => console.log(`listen: ${error.code}`));
server.listen(port, '127.0.0.1', () => {
  console.log('listen: done');
  server.close();
});
