// Files of other tools in which several services have one port: the tools run them, so the import does too.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { stringifyProject } from '../../src/project/imported_project.ts';
import { importProject } from '../../src/project/importers.ts';
import { parseProject } from '../../src/project/read_project.ts';
import { must } from '../kit/must.ts';
import { folder, put } from './import_folder.ts';

/** The port and the check of each service of a file, which is accepted as a project file; and the notes. */
async function imported(name: string, text: string) {
  const { services, notes } = must(await importProject(put(name, text)));
  const project = await parseProject(stringifyProject(services, []), join(folder, 'berth.yaml'), process.env);
  const ports = project.services.map((one) => [one.name, one.port, one.ready]);
  return { ports, notes, project };
}

const TCP = { tcp: true };

it('the first process of a Procfile keeps a port that two name', async () => {
  const text =
    'web: rails s -p 3000\ntunnel: cloudflared tunnel --url http://localhost:3000\nold: puma -p 3000\n';
  const { ports, notes } = await imported('Procfile', text);
  expect(ports).toEqual([
    ['web', 3000, TCP],
    ['tunnel', null, null],
    ['old', 'auto', null],
  ]);
  expect(notes).toEqual(['old: port 3000 is left out, as web has it; it gets a free one in $PORT']);
});

it('the first script of a package.json keeps a port that two name', async () => {
  const scripts = {
    'dev:prod': 'next start -p 3000',
    'dev:stripe': 'stripe listen --forward-to localhost:3000/api/webhook',
    'dev:tunnel': 'ngrok http 3000',
    dev: 'next dev -p 3000',
  };
  const { ports, notes } = await imported('package.json', JSON.stringify({ name: 'shop', scripts }));
  expect(ports).toEqual([
    ['shop', 3000, TCP],
    ['prod', 'auto', null],
    ['stripe', null, null],
    ['tunnel', null, null],
  ]);
  expect(notes).toEqual(['prod: port 3000 is left out, as shop has it; it gets a free one in $PORT']);
});

it('the first compose service keeps a port that several publish', async () => {
  put('.env', 'WEB=8080\n');
  const text = `
services:
  db: { image: postgres, ports: ["5433:5432"], profiles: [pg] }
  db2: { image: mysql, ports: ["5433:3306"], profiles: [my] }
  a: { image: nginx, ports: ["127.0.0.1:8080:80"] }
  b: { image: nginx, ports: ["127.0.0.2:\${WEB}:80"] }
  c: { image: nginx, ports: [{ target: 80, published: "\${NONE:-8080}" }] }
`;
  const { ports, notes } = await imported('compose.yaml', text);
  expect(ports).toEqual([
    ['db', 5433, TCP],
    ['db2', null, null],
    ['a', 8080, TCP],
    ['b', null, null],
    ['c', null, null],
  ]);
  expect(notes.slice(-3)).toEqual([
    'db2: port 5433 is left out, as db has it',
    'b: port 8080 is left out, as a has it',
    'c: port 8080 is left out, as a has it',
  ]);
});

it('a UDP port of a compose service is no port to connect to', async () => {
  const text = `
services:
  dns: { image: x, ports: ["5353:53/udp"] }
  long: { image: x, ports: [{ target: 53, published: 5354, protocol: udp }] }
  both: { image: x, ports: ["5354:53/udp", "5355:53/tcp"] }
  web: { image: nginx, ports: ["5353:80"] }
`;
  const { ports, notes } = await imported('compose.yaml', text);
  expect(ports).toEqual([
    ['dns', null, null],
    ['long', null, null],
    ['both', 5355, TCP],
    ['web', 5353, TCP],
  ]);
  expect(notes).toEqual([]);
});

it('a process-compose process that only probes a port leaves it to the one that names it', async () => {
  put('.env', 'PORT=5000\n');
  const text = `
processes:
  proxy: { command: ./proxy, readiness_probe: { http_get: { host: 127.0.0.1, port: 3000, path: /proxied } } }
  web: { command: "./web --port 3000" }
  again: { command: "./web --port 3000" }
`;
  const { ports, notes, project } = await imported('process-compose.yaml', text);
  expect(ports).toEqual([
    ['proxy', null, 'http://127.0.0.1:3000/proxied'],
    ['web', 3000, TCP],
    ['again', null, null],
  ]);
  expect(notes.slice(-2)).toEqual([
    'proxy: port 3000 is left out, as web has it',
    'again: port 3000 is left out, as web has it',
  ]);
  const env = project.services.map((one) => Object.fromEntries(one.env)['PORT']);
  expect(env).toEqual(['5000', '${port.web}', '5000']);
});

it('PORT in the environment of a whole process-compose file is that of the process that uses it', async () => {
  const text = `
environment: [PORT=3000]
processes:
  db: { command: postgres }
  web: { command: "rails s -p $PORT" }
  api: { command: ./api, environment: [PORT=4000] }
  admin: { command: ./admin, readiness_probe: { http_get: { port: 4000 } } }
`;
  const { ports } = await imported('process-compose.yaml', text);
  expect(ports).toEqual([
    ['db', null, null],
    ['web', 3000, TCP],
    ['api', 4000, null],
    ['admin', null, 'http://localhost:4000/'],
  ]);
});
