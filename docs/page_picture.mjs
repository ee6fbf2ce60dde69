// Makes docs/page.png, the picture of the README, from a real daemon with services and agents:
// `node src/build/build.mjs && node docs/page_picture.mjs`
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const bin = fileURLToPath(new URL('../dist/bin.cjs', import.meta.url));
const picture = fileURLToPath(new URL('page.png', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'berth-picture-'));
/** How long the services run before the picture is taken: their charts need some points. */
const RUN_MS = Number(process.env.BERTH_PICTURE_MS ?? 60_000);

/** The command of a service that answers, works a little, and prints what `lines` prints, with `n` counting up. */
function serve(name, lines) {
  const program = `require('node:http').createServer((q, r) => r.end('hello')).listen(process.env.PORT, '127.0.0.1');
let n = 0;
setInterval(() => { n += 1; for (let i = 0; i < 4e6 * (n % 5); i += 1); ${lines} }, 900);
`;
  writeFileSync(join(folder, `${name}.cjs`), program);
  return `exec node ${name}.cjs`;
}

const SERVICES = [
  {
    name: 'shop--db',
    cmd: serve('db', 'if (n % 4 === 0) console.log("checkpoint complete: wrote " + (n % 37) + " buffers")'),
  },
  {
    name: 'shop--api',
    dependsOn: ['shop--db'],
    cmd: serve(
      'api',
      'const bad = n % 7 === 0; console.log(JSON.stringify({ level: bad ? "warn" : "info", msg: bad ? "too many requests" : "request done", method: "GET", path: "/v1/orders/" + (4200 + n), status: bad ? 429 : 200, ms: 3 + n % 40 }))',
    ),
  },
  {
    name: 'shop--web',
    dependsOn: ['shop--api'],
    cmd: serve('web', 'console.log("page reload src/App.tsx")'),
  },
  {
    name: 'shop--worker',
    port: null,
    cmd: 'echo "ERROR: no queue configured, set QUEUE_URL" >&2; sleep 0.3; exit 3',
  },
  { name: 'mail', group: 'tools', cmd: serve('mail', '') },
  { name: 'redis', group: 'tools', cmd: serve('redis', '') },
  { name: 'search', group: 'tools', cmd: 'sleep 600', starts: false },
];
const AGENTS = [
  { name: 'reviewer', cmd: 'htop' },
  { name: 'writer', cmd: 'vim -u NONE -N /etc/services' },
];

async function startDaemon() {
  const config = join(folder, 'config.toml');
  writeFileSync(config, 'port = 0\n[gateway]\nport = 0\n');
  const args = ['daemon', '--state-dir', join(folder, 'state'), '--config', config];
  const child = spawn(process.execPath, [bin, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(child.stdout), 'line');
  return { child, url: /http:\/\/[\w.:]+/.exec(line)[0] };
}

async function post(url, path, body) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
}

const { child, url } = await startDaemon();
try {
  await post(url, '/v1/stacks', { project: 'shop', path: folder });
  for (const { starts = true, ...service } of SERVICES) {
    const stack = service.name.startsWith('shop--') ? { stack: 'shop', group: 'shop' } : {};
    await post(url, '/v1/services', { port: 0, cwd: folder, ...stack, ...service });
    if (starts) await post(url, `/v1/services/${service.name}/start?wait=false`, {});
  }
  for (const agent of AGENTS) await post(url, '/v1/agents/spinup', { cwd: folder, ...agent });
  await new Promise((resolve) => setTimeout(resolve, RUN_MS));
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 760 } });
  await page.goto(`${url}/#/services/shop--api`);
  await page.locator('.chart canvas').nth(1).waitFor();
  await page.locator('.log-line').nth(20).waitFor();
  await page.screenshot({ path: picture });
  await browser.close();
} finally {
  child.kill();
  await once(child, 'exit');
  rmSync(folder, { recursive: true, force: true });
}
