// Writers, observers and share tokens, through real WebSockets on both servers:
// docs/reference.md "Writers and observers", "Shared terminals".
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { isPublicPath } from '../../../src/front/api/public_paths.ts';
import { ROUTES } from '../../../src/front/api/routes.ts';
import { bearerText, formatBearer, parseKey } from '../../../src/protocol/access_key.ts';
import type {
  ScreenReading,
  TerminalProtocol,
  TerminalViewersProtocol,
} from '../../../src/protocol/terminal.ts';
import { SHARE } from '../../../src/settings/agent_limits.ts';
import { afterThisTest, settle, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { random } from '../../kit/random.ts';
import { hmac } from '../../kit/server_proof.ts';
import {
  cloudFront,
  expectError,
  type FrontSetup,
  runningState,
  SERVERS,
  specRow,
  startFront,
} from '../kit.ts';

const AGENT = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
const MINUTE_MS = 60_000;
const SCREEN: ScreenReading = {
  ...{ cols: 80, rows: 24, cursor: { x: 0, y: 0 } },
  ...{ altScreen: false, title: '', lines: ['hello'] },
};
const asProtocol = (token: string): string =>
  `base64url.bearer.authorization.berth.${Buffer.from(token).toString('base64url')}`;
const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe.each(SERVERS)('%s', (server) => {
  const start = async (setup: FrontSetup = {}) => {
    const front = await startFront({ server, ...setup });
    const rows = ['bot', 'other'].map((name) => specRow(name, { agent: AGENT, group: 'Agents' }));
    front.views.tell('specs', { rows });
    front.views.tell('states', { rows: [runningState('bot', 5), runningState('other', 6)] });
    const service = await front.stand<TerminalProtocol>('service:bot', { screen: () => SCREEN });
    await settle();
    const token = setup.token ? bearing(setup.token) : {};
    const attach = async (query = '', shown = setup.token ?? '') => {
      const url = `ws://127.0.0.1:${front.port}/v1/agents/bot/attach${query}`;
      const socket = new WebSocket(url, ['berth.v1', ...(shown ? [asProtocol(shown)] : [])]);
      afterThisTest(() => socket.terminate());
      const texts: unknown[] = [];
      socket.on('message', (data: Buffer, isBinary) => {
        if (!isBinary) texts.push(JSON.parse(data.toString()));
      });
      const closed = new Promise<[code: number, reason: string]>((resolve) =>
        socket.on('close', (code, reason) => resolve([code, reason.toString()])),
      );
      const refusal = new Promise<{ status: number; code: string } | null>((resolve) => {
        socket.on('open', () => resolve(null));
        socket.on('error', () => {});
        socket.on('unexpected-response', (_request, response) => {
          let text = '';
          response.on('data', (part) => {
            text += part;
          });
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, code: JSON.parse(text).code }),
          );
        });
      });
      const refused = await refusal;
      const viewer = refused ? '' : (await service.next('attach')).viewer;
      return { socket, texts, closed, refused, viewer };
    };
    const share = async (minutes = 30): Promise<{ id: string; token: string }> => {
      const body = { mode: 'observe', minutes };
      const answer = await front.request('POST', '/v1/agents/bot/share', { ...token, body });
      expect(answer.status).toBe(201);
      return answer.body;
    };
    const typed = () => Buffer.concat(service.of('input').map(({ data }) => data)).toString();
    return { front, service, attach, share, token, typed };
  };

  describe('a writer', () => {
    it('is the only one, until another one takes over and it is notified', async () => {
      const { attach, front, service, typed } = await start();
      const first = await attach('?mode=write');
      expect((await attach('?mode=write')).refused).toEqual({ status: 409, code: 'writer_attached' });
      first.socket.send(Buffer.from('one '));
      await eventually(() => typed() === 'one ');
      // What still waits for its program is not typed after the takeover.
      first.socket.send(Buffer.from('late '));
      first.socket.send('{"ack":0}');
      const second = await attach('?mode=write&takeover=true');
      expect(await first.closed).toEqual([4001, 'another viewer has taken over']);
      expect(first.texts).toContainEqual({ takenOver: true });
      await eventually(() => service.of('detach').some(({ viewer }) => viewer === first.viewer));
      front.node.ref<TerminalViewersProtocol>('viewers').tell('inputTaken', { viewer: first.viewer });
      second.socket.send(Buffer.from('two'));
      await eventually(() => typed() === 'one two');
      second.socket.close();
      await eventually(() => service.of('detach').some(({ viewer }) => viewer === second.viewer));
      expect((await attach('?mode=write')).refused).toBeNull();
    });

    it('neither blocks viewers without a mode nor is blocked by them', async () => {
      const { attach, typed } = await start();
      const before = await attach();
      const writer = await attach('?mode=write&takeover=true');
      const after = await attach();
      for (const { socket } of [before, writer, after]) socket.send(Buffer.from('x'));
      await eventually(() => typed() === 'xxx');
    });

    it('is refused with invalid parameters', async () => {
      const { attach } = await start();
      for (const query of [
        '?takeover=true',
        '?mode=observe&takeover=true',
        '?mode=own',
        '?mode=write&takeover=1',
      ])
        expect((await attach(query)).refused).toEqual({ status: 400, code: 'invalid_spec' });
    });
  });

  describe('an observer', () => {
    it('is not noticed by the program, and sees its output', async () => {
      const { attach, front, service } = await start();
      const observer = await attach('?mode=observe');
      expect(service.of('attach')).toContainEqual({ viewer: observer.viewer, observes: true });
      const got = new Promise<Buffer>((resolve) => observer.socket.once('message', resolve));
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      viewers.tell('output', { viewer: observer.viewer, bytes: Buffer.from('hello') });
      expect((await got).toString()).toBe('hello');
      observer.socket.send('{"ack":5}');
      await eventually(() => service.of('ack').length === 1);
    });

    it('is refused while the agent is asleep, and does not wake it', async () => {
      const { attach, front } = await start();
      front.views.tell('states', {
        rows: [{ ...runningState('bot', 5), status: 'sleeping', process: null }],
      });
      await settle();
      expect((await attach('?mode=observe')).refused).toEqual({ status: 409, code: 'not_running' });
      expect((await attach()).refused).toBeNull();
    });

    it('can neither type nor resize, whatever it sends', { timeout: 20_000 }, async () => {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const below = random(seed);
      const { attach, service } = await start();
      const bytes = (): Buffer => Buffer.from(Array.from({ length: below(40) }, () => below(256)));
      const frames: (() => Buffer | string)[] = [
        bytes,
        () => '{"resize":[100,40]}',
        () => `{"resize":[${below(2000)},${below(2000)}]}`,
        () => ` {"resize" : [ 1e2 , 40 ] } `,
        () => '{"ack":1,"resize":[9,9]}',
        () => '{"input":"rm"}',
        () => `{"ack":${below(3) - 1}}`,
        () => bytes().toString('latin1'),
        () => '',
        () => Buffer.alloc(0),
        () => '\u0003',
        () => '{"__proto__":{"resize":[9,9]}}',
      ];
      for (let round = 0; round < 25; round += 1) {
        const { socket, viewer } = await attach('?mode=observe');
        for (let count = 0; count < 8; count += 1) {
          const frame = must(frames[below(frames.length)])();
          // Invalid frames of the protocol below this one, too.
          if (below(10) === 0) socket.ping(bytes());
          if (socket.readyState === WebSocket.OPEN) socket.send(frame, { binary: typeof frame !== 'string' });
        }
        socket.close();
        await eventually(() => service.of('detach').some((one) => one.viewer === viewer));
      }
      const told = new Set(service.received.map(({ kind }) => kind));
      expect({ seed, told: [...told].sort() }).toEqual({
        seed,
        told: ['attach', 'detach', ...(told.has('ack') ? ['ack'] : [])].sort(),
      });
    });

    it('that types is closed', async () => {
      const { attach } = await start();
      for (const frame of [Buffer.from('x'), '{"resize":[100,40]}']) {
        const { socket, closed } = await attach('?mode=observe');
        socket.send(frame);
        expect(await closed).toEqual([1008, 'an observer neither types nor resizes']);
      }
    });
  });

  describe('a share token', () => {
    it.each(['', 'secret'])(
      'gives access to one terminal to observe and its screen, with auth.token "%s"',
      async (token) => {
        const { attach, front, share, typed } = await start({ token });
        const { token: shared } = await share();
        expect((await attach('', shared)).refused).toBeNull();
        expect((await attach('?mode=observe', shared)).refused).toBeNull();
        expect((await attach('?mode=write', shared)).refused).toEqual({
          status: 403,
          code: 'forbidden_token',
        });
        const screen = await front.request('GET', '/v1/agents/bot/screen', bearing(shared));
        expect([screen.status, screen.body.lines]).toEqual([200, ['hello']]);
        const { socket, closed } = await attach('', shared);
        socket.send(Buffer.from('x'));
        expect((await closed)[0]).toBe(1008);
        expect(typed()).toBe('');
      },
    );

    it.each(['', 'secret'])('gives access to nothing else, with auth.token "%s"', async (token) => {
      const { front, share } = await start({ token, cloud: cloudFront() });
      const { token: shared } = await share();
      const { life } = (await front.request('GET', `/v1/proof?nonce=${'n'.repeat(22)}`)).body;
      const { id, secret } = must(parseKey(shared));
      const good = ['/v1/agents/bot/attach', '/v1/agents/bot/screen'];
      for (const given of [shared, formatBearer(id, hmac(secret, bearerText(life)))])
        for (const { method, path } of ROUTES)
          for (const name of ['bot', 'other']) {
            const asked = path.replace(/\{\w+\}/, name);
            if (isPublicPath(path) || good.includes(asked)) continue;
            const { status, body } = await front.request(method, asked, bearing(given));
            const isCloud = path.startsWith('/k8s');
            expect([method, asked, status, body.code]).toEqual([
              method,
              asked,
              ...(isCloud ? [401, 'unauthorized'] : [403, 'forbidden_token']),
            ]);
          }
      for (const [method, path] of [
        ['GET', '/nothing'],
        ['PUT', '/v1/agents/bot/screen'],
        ['POST', '/v1/agents/bot/screen'],
        ['GET', '/v1/agents/bo%74/keys'],
      ] as const)
        expectError(await front.request(method, path, bearing(shared)), 'forbidden_token');
      const session = await front.request('POST', '/v1/page-sessions', bearing(shared));
      expectError(session, 'unauthorized');
    });

    it('is proven and sent like any key', async () => {
      const { front, share } = await start();
      const { id, secret } = must(parseKey((await share()).token));
      const nonce = 'n'.repeat(22);
      const { proof, life } = (await front.request('GET', `/v1/proof?nonce=${nonce}&key=${id}`)).body;
      expect(proof).toBe(hmac(secret, `berth proof\n${nonce}\n127.0.0.1:${front.port}\n${life}`));
      const bearer = formatBearer(id, hmac(secret, bearerText(life)));
      expect((await front.request('GET', '/v1/agents/bot/screen', bearing(bearer))).status).toBe(200);
      for (const wrong of [
        `${id}.${'x'.repeat(43)}`,
        `berth.${id}.${'x'.repeat(43)}`,
        `${id}.`,
        `berth.${id}.`,
      ])
        expectError(await front.request('GET', '/v1/agents/bot/screen', bearing(wrong)), 'unauthorized');
    });

    it('expires on time, also on open connections', async () => {
      const clock = virtualClock();
      const { attach, front, service, share } = await start({ clock });
      const { token } = await share(2);
      const watching = await attach('', token);
      await clock.advance(2 * MINUTE_MS - 1);
      expect((await front.request('GET', '/v1/agents/bot/screen', bearing(token))).status).toBe(200);
      await clock.advance(1);
      expect(await watching.closed).toEqual([1008, 'the share has ended']);
      await eventually(() => service.of('detach').some(({ viewer }) => viewer === watching.viewer));
      expectError(await front.request('GET', '/v1/agents/bot/screen', bearing(token)), 'unauthorized');
      expect((await attach('', token)).refused?.status).toBe(401);
    });

    it('is listed without its secret, and ends when it is revoked', async () => {
      const { attach, front, share } = await start();
      const [one, two] = [await share(), await share()];
      const watching = await attach('', one.token);
      const list = async () => (await front.request('GET', '/v1/agents/bot/share')).body.shares;
      const listed: { id: string; viewers: number }[] = await list();
      expect(listed.map(({ id, viewers }) => [id, viewers])).toEqual([
        [one.id, 1],
        [two.id, 0],
      ]);
      expect(JSON.stringify(listed)).not.toContain(one.token.split('.')[1]);
      const revoked = await front.request('DELETE', `/v1/agents/bot/share?id=${one.id}`);
      expect(revoked.body).toEqual({ name: 'bot', revoked: [one.id] });
      expect((await watching.closed)[0]).toBe(1008);
      expectError(await front.request('DELETE', `/v1/agents/bot/share?id=${one.id}`), 'invalid_spec');
      expectError(await front.request('DELETE', `/v1/agents/other/share?id=${two.id}`), 'invalid_spec');
      expect((await front.request('DELETE', '/v1/agents/bot/share')).body.revoked).toEqual([two.id]);
      expect(await list()).toEqual([]);
    });

    it('ends with its agent, and with the token of the daemon', async () => {
      const { front, share, token } = await start({ token: 'secret' });
      const first = await share();
      front.views.tell('removed', { name: 'bot' });
      front.views.tell('specs', { rows: [specRow('bot', { agent: AGENT, group: 'Agents' })] });
      await settle();
      const screen = (shown: string) => front.request('GET', '/v1/agents/bot/screen', bearing(shown));
      expectError(await screen(first.token), 'unauthorized');
      const second = await share();
      front.front.reload({ token: 'new', allowedExtensions: [], allowedOrigins: [] });
      expectError(await screen(second.token), 'unauthorized');
      expectError(await front.request('GET', '/v1/agents', token), 'unauthorized');
    });

    it('is limited in minutes, shares and viewers', async () => {
      const { attach, front, share } = await start();
      const path = '/v1/agents/bot/share';
      for (const body of [
        {},
        { minutes: 0 },
        { minutes: 1.5 },
        { minutes: '30' },
        { minutes: SHARE.maxMinutes + 1 },
        { minutes: 5, mode: 'write' },
        { minutes: 5, for: 'ever' },
      ])
        expectError(await front.request('POST', path, { body }), 'invalid_spec');
      expectError(
        await front.request('POST', '/v1/agents/web/share', { body: { minutes: 1 } }),
        'unknown_agent',
      );
      const { token } = await share();
      for (let count = 0; count < SHARE.maxViewers; count += 1)
        expect((await attach('', token)).refused).toBeNull();
      expect((await attach('', token)).refused).toEqual({ status: 503, code: 'daemon_busy' });
      for (let count = 1; count < SHARE.maxOpen; count += 1) await share();
      expectError(await front.request('POST', path, { body: { minutes: 1 } }), 'daemon_busy');
    });
  });
});
