// Registers and starts a service with the client, and prints what happens to it until it is ready.
import { connectLocal } from '@berth-dev/client';

const berth = await connectLocal();
const { url } = await berth.register({
  name: 'hello',
  port: 0,
  cmd: `exec node -e "require('http').createServer((q, s) => s.end('hello')).listen(process.env.PORT, '127.0.0.1')"`,
});
const events = berth.events({ names: ['hello'], types: ['service.started'] });
const started = events.next();
await berth.start('hello');
const { value } = await started;
console.log(value.type, url);
await events.return();
