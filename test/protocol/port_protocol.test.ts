// docs/reference.md "Protocol of a service".
import { expect, it } from 'vitest';
import { shownAddress, toldProtocol } from '../../src/protocol/port_protocol.ts';
import { completeRegistration } from '../../src/protocol/registration.ts';
import { input } from '../kit/service_inputs.ts';

it.each([
  'redis-server --port $PORT',
  'exec redis-server',
  'exec /usr/lib/postgresql/17/bin/postgres -D data -p $PORT',
  'exec setpriv --reuid=65534 --clear-groups postgres -D data',
  'LANG=C PGDATA=data postgres',
  'test -d data || initdb -D data; exec postgres -D data',
  'gosu mysql mysqld --port=$PORT',
  'sudo -u postgres postgres -D data',
  'cd data && exec mongod',
])('%s does not speak HTTP', (cmd) => {
  expect(toldProtocol(cmd, null)).toBe('tcp');
});

it.each([
  'node server.mjs',
  'node server.mjs --db postgres',
  'psql postgres',
  'wait-for redis-server:6379 && node api.mjs',
  './redis-server.sh',
  'echo "redis-server"',
  'http-of postgres',
])('%s counts as HTTP', (cmd) => {
  expect(toldProtocol(cmd, null)).toBe('http');
});

it('a registered protocol, and a check over HTTP, take precedence over the command', () => {
  const cmd = 'exec postgres -D data';
  const { protocol: _, ...given } = input('db', { cmd });
  expect(completeRegistration(given).protocol).toBe('tcp');
  expect(completeRegistration({ ...given, protocol: 'http' }).protocol).toBe('http');
  expect(completeRegistration({ ...given, cmd: './odd', protocol: 'tcp' }).protocol).toBe('tcp');
  for (const ready of ['http://localhost:1/', { http: '/health' }] as const)
    expect(completeRegistration({ ...given, ready }).protocol).toBe('http');
  for (const ready of ['tcp://localhost:1', { tcp: true }, { exec: 'pg_isready' }] as const)
    expect(completeRegistration({ ...given, ready }).protocol).toBe('tcp');
});

it('the address is shown with the scheme of the protocol', () => {
  const url = 'http://localhost:5432';
  expect(shownAddress({ protocol: 'tcp', url })).toBe('tcp://localhost:5432');
  expect(shownAddress({ protocol: 'http', url })).toBe(url);
  expect(shownAddress({ protocol: 'tcp', url: null })).toBeNull();
});
