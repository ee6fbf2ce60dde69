// A web page of one's own with the typed client, in a real browser: docs/reference.md "CORS".
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { dashboardUrl } from '../../src/settings/build_paths.ts';
import { afterThisTest } from '../kit/actors.ts';
import { startDaemon } from '../kit/daemon.ts';
import { browserTest, hasChromium, openPage } from './browser.ts';

const TOKEN = 'a+b/c=-and-more-of-it';
const CLIENT = readFileSync(new URL('../client-package/browser.js', dashboardUrl()));

/** A server of a page that has the client. */
async function serveClient(): Promise<string> {
  const server = createServer((request, response) => {
    const isClient = request.url === '/client.js';
    response.setHeader('Content-Type', isClient ? 'text/javascript' : 'text/html');
    response.end(isClient ? CLIENT : '<!doctype html><title>own</title>');
  });
  afterThisTest(() => void server.close().closeAllConnections());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

it.runIf(hasChromium)(browserTest('reads and changes services if it is allowed'), async () => {
  const [own, other] = await Promise.all([serveClient(), serveClient()]);
  const config = `allowed_origins = ["${own}"]\n[auth]\ntoken = "${TOKEN}"`;
  const daemon = await startDaemon({ config });
  const run = (token: string): string =>
    `import('/client.js').then(async ({ connect }) => {
        const berth = connect({ url: 'http://localhost:${daemon.port}', token: ${JSON.stringify(token)} });
        await berth.register({ name: 'web', port: 3000, cmd: 'true' });
        return (await berth.services()).map(({ name }) => name).join();
      }).catch(({ code, message }) => code + ': ' + message)`;
  const page = await openPage(own);
  expect(await page.evaluate(run(TOKEN))).toBe('web');
  expect(await page.evaluate(run('wrong'))).not.toContain('web');
  const foreign = await openPage(other, { mayComplain: /blocked by CORS policy/ });
  expect(await foreign.evaluate(run(TOKEN))).toBe(
    `unreachable: no daemon answers at localhost:${daemon.port}, ` +
      `or it does not let pages of ${other} call`,
  );
});
