// The terminal of an agent through real WebSockets, on both servers: docs/reference.md "Attach".
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { TerminalProtocol, TerminalViewersProtocol } from '../../../src/protocol/terminal.ts';
import type { Handlers } from '../../../src/runtime/actor.ts';
import { AGENT } from '../../../src/settings/agent_limits.ts';
import { KIB, MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, settle, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import {
  expectError,
  type FrontSetup,
  type Running,
  runningState,
  SERVERS,
  specRow,
  startFront,
} from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });

  describe('a terminal', () => {
    const agent = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
    const attach = (front: Running, protocols: string[], name = 'bot') => {
      const socket = new WebSocket(`ws://127.0.0.1:${front.port}/v1/agents/${name}/attach`, protocols);
      afterThisTest(() => socket.terminate());
      return socket;
    };
    const refused = (socket: WebSocket) =>
      new Promise<{ status: number; code: string }>((resolve) => {
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

    it("is opened with the token as a subprotocol, and shows the service's output", async () => {
      const front = await start({ token: 'secret' });
      front.views.tell('specs', { rows: [specRow('bot', { agent, group: 'Agents' })] });
      front.views.tell('states', { rows: [runningState('bot', 5)] });
      const service = await front.stand<TerminalProtocol>('service:bot');
      await settle();
      const token = `base64url.bearer.authorization.berth.${Buffer.from('secret').toString('base64url')}`;
      const socket = attach(front, ['berth.v1', token]);
      const got: unknown[] = [];
      socket.on('message', (data: Buffer, binary) => got.push(binary ? data : JSON.parse(data.toString())));
      const closed = new Promise<number>((resolve) => socket.on('close', resolve));
      await new Promise((resolve) => socket.on('open', resolve));
      const { viewer } = await service.next('attach');
      expect(socket.protocol).toBe('berth.v1');
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      viewers.tell('size', { viewer, cols: 80, rows: 24 });
      viewers.tell('output', { viewer, bytes: Buffer.from('$ ') });
      socket.send(Buffer.from('ls\n'));
      socket.send('{"resize":[100,40]}');
      expect(Buffer.from((await service.next('input')).data).toString()).toBe('ls\n');
      expect(await service.next('resize')).toEqual({ cols: 100, rows: 40 });
      viewers.tell('exit', { viewer, exitCode: 0, signal: null });
      expect(await closed).toBe(1000);
      expect(got).toEqual([
        { ack: 0 },
        { size: [80, 24] },
        Buffer.from('$ '),
        { exit: { exitCode: 0, signal: null } },
      ]);
      await service.next('detach');
    });

    const viewed = async (more: FrontSetup = {}, handlers: Partial<Handlers<TerminalProtocol>> = {}) => {
      const front = await start(more);
      front.views.tell('specs', { rows: [specRow('bot', { agent, group: 'Agents' })] });
      front.views.tell('states', { rows: [runningState('bot', 5)] });
      const service = await front.stand<TerminalProtocol>('service:bot', handlers);
      await settle();
      const viewer = async () => {
        const socket = attach(front, ['berth.v1']);
        await new Promise((resolve) => socket.on('open', resolve));
        return { socket, ...(await service.next('attach')) };
      };
      return { front, service, viewer };
    };

    it('gets the first size at once, and then the last of many, from any viewer', async () => {
      const clock = virtualClock();
      const { front, service, viewer } = await viewed({ clock });
      const [one, other] = [await viewer(), await viewer()];
      const ask = async (socket: WebSocket, columns: readonly number[]) => {
        for (const cols of columns) socket.send(JSON.stringify({ resize: [cols, 24] }));
        socket.send(Buffer.from('x'));
        const { viewer: name } = await service.next('input');
        front.node.ref<TerminalViewersProtocol>('viewers').tell('inputTaken', { viewer: name });
      };
      const resizes = () => service.of('resize').map(({ cols }) => cols);
      await ask(one.socket, [100, 101, 102]);
      await ask(other.socket, [110, 111]);
      expect(resizes()).toEqual([100]);
      await clock.advance(AGENT.resizeIntervalMs);
      expect(resizes()).toEqual([100, 111]);
      await ask(one.socket, [120, 121]);
      expect(resizes()).toEqual([100, 111]);
      await clock.advance(AGENT.resizeIntervalMs);
      expect(resizes()).toEqual([100, 111, 121]);
      await clock.advance(AGENT.resizeIntervalMs);
      await ask(one.socket, [130]);
      expect(resizes()).toEqual([100, 111, 121, 130]);
    });

    it('counts as read only what a viewer has read, whatever it acknowledges', async () => {
      const { front, service, viewer } = await viewed();
      const deaf = await viewer();
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      const bytes = Buffer.alloc(MIB);
      const pieces = 16;
      deaf.socket.pause();
      for (let count = 0; count < pieces; count += 1) viewers.tell('output', { viewer: deaf.viewer, bytes });
      for (let count = 0; count < pieces; count += 1) deaf.socket.send(JSON.stringify({ ack: MIB }));
      // Its acknowledgements are not read before this.
      deaf.socket.send(Buffer.from('x'));
      await service.next('input');
      const acknowledged = () => service.of('ack').reduce((sum, ack) => sum + ack.bytes, 0);
      // The kernel has the rest.
      expect(acknowledged()).toBeLessThan((pieces / 2) * MIB);
      deaf.socket.resume();
      await eventually(() => acknowledged() === pieces * MIB);
    });

    it('passes on many small acknowledgements in few messages', async () => {
      const { front, service, viewer } = await viewed();
      const one = await viewer();
      const bytes = Buffer.alloc(64 * KIB);
      front.node.ref<TerminalViewersProtocol>('viewers').tell('output', { viewer: one.viewer, bytes });
      await new Promise((resolve) => one.socket.once('message', resolve));
      for (let count = 0; count < 64; count += 1) one.socket.send(JSON.stringify({ ack: KIB }));
      await eventually(() => service.of('ack').reduce((sum, ack) => sum + ack.bytes, 0) === 64 * KIB);
      expect(service.of('ack').length).toBeLessThanOrEqual(2);
    });

    it('passes on input message by message, and closes a viewer whose program does not read', async () => {
      const { front, service, viewer } = await viewed();
      const [pushy, other] = [await viewer(), await viewer()];
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      const closed = new Promise<number>((resolve) => pushy.socket.on('close', resolve));
      pushy.socket.on('error', () => undefined);
      const chunk = Buffer.alloc(64 * KIB, 'x');
      for (let sent = 0; sent <= 2 * AGENT.maxUnacknowledgedBytes; sent += chunk.length)
        pushy.socket.send(chunk);
      expect(await closed).toBe(1008);
      await eventually(() => service.of('detach').length > 0);
      const bytesOf = (name: string) =>
        service.of('input').reduce((sum, { viewer: of, data }) => sum + (of === name ? data.length : 0), 0);
      expect(bytesOf(pushy.viewer)).toBeLessThanOrEqual(AGENT.maxUnacknowledgedBytes + chunk.length);
      const typed = () =>
        Buffer.concat(
          service.of('input').flatMap(({ viewer: of, data }) => (of === other.viewer ? [data] : [])),
        ).toString();
      for (const key of ['l', 's', '\n']) other.socket.send(Buffer.from(key));
      await eventually(() => typed() === 'l');
      viewers.tell('inputTaken', { viewer: other.viewer });
      await eventually(() => typed() === 'ls\n');
    });

    it('acknowledges input once the terminal has taken it, and in one number to a viewer that does not read', async () => {
      const { front, service, viewer } = await viewed();
      const one = await viewer();
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      const acks: number[] = [];
      one.socket.on('message', (data: Buffer, isBinary) => {
        if (!isBinary) acks.push(JSON.parse(data.toString()).ack);
      });
      const take = async (count: number) => {
        for (let sent = 0; sent < count; sent += 1) {
          one.socket.send(Buffer.from('typed'));
          await service.next('input');
          viewers.tell('inputTaken', { viewer: one.viewer });
        }
      };
      one.socket.send(Buffer.from('abc'));
      await service.next('input');
      one.socket.send(Buffer.from('never taken'));
      viewers.tell('inputTaken', { viewer: one.viewer });
      await service.next('input');
      await eventually(() => acks.length === 1);
      expect(acks).toEqual([3]);
      viewers.tell('inputTaken', { viewer: one.viewer });
      await eventually(() => acks.length === 2);
      one.socket.pause();
      // More than the kernel keeps for it.
      const bytes = Buffer.alloc(MIB);
      for (let count = 0; count < 16; count += 1) viewers.tell('output', { viewer: one.viewer, bytes });
      await take(20);
      one.socket.resume();
      await eventually(() => acks.length === 3);
      expect(acks.slice(2)).toEqual([20 * 'typed'.length]);
    });

    it('has what viewers have typed before keys that come later, within the limit of a viewer', async () => {
      const typed: string[] = [];
      const { front, service, viewer } = await viewed(
        {},
        {
          input: ({ data }) => {
            typed.push(data.length > 9 ? `${data.length} bytes` : Buffer.from(data).toString());
            return null;
          },
          type: ({ text }) => {
            typed.push(text);
            return { bytes: text.length };
          },
        },
      );
      const [one, other] = [await viewer(), await viewer()];
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      const send = async (socket: WebSocket, ...frames: (string | Buffer)[]) => {
        for (const frame of frames) socket.send(Buffer.from(frame));
        const pong = new Promise((resolve) => socket.once('pong', resolve));
        socket.ping();
        await pong;
      };
      const keys = (text: string) => front.request('POST', '/v1/agents/bot/keys', { body: { text } });
      await send(one.socket, 'a', 'b', 'c');
      await send(other.socket, 'x', 'y');
      expect(await keys('k')).toMatchObject({ status: 200 });
      expect(typed).toEqual(['a', 'x', 'bc', 'y', 'k']);
      await send(one.socket, 'd');
      viewers.tell('inputTaken', { viewer: one.viewer });
      await keys('l');
      viewers.tell('inputTaken', { viewer: one.viewer });
      viewers.tell('inputTaken', { viewer: one.viewer });
      await send(one.socket, 'e');
      await eventually(() => typed.slice(5).join(' ') === 'd l e');
      // What keys have pushed on counts until it is read.
      const chunks = Array.from({ length: 16 }, () => Buffer.alloc(AGENT.maxUnacknowledgedBytes / 16, 'x'));
      const closed = new Promise<number>((resolve) => one.socket.on('close', resolve));
      await send(one.socket, ...chunks);
      await keys('m');
      expect(typed.slice(8)).toEqual([`${AGENT.maxUnacknowledgedBytes} bytes`, 'm']);
      one.socket.send(Buffer.from('f'));
      expect(await closed).toBe(1008);
      expect(service.of('type')).toHaveLength(3);
    });

    it('closes it after less unread input while there are many viewers', async () => {
      const { viewer } = await viewed();
      const pushy = await viewer();
      const many = 128;
      for (let count = 1; count < many; count += 1) await viewer();
      const share = AGENT.maxViewerBytes / many;
      expect(share).toBeLessThan(AGENT.maxUnacknowledgedBytes);
      const closed = new Promise<number>((resolve) => pushy.socket.on('close', resolve));
      pushy.socket.on('error', () => undefined);
      const chunk = Buffer.alloc(64 * KIB, 'x');
      // The first one is on its way to the program at once.
      for (let sent = 0; sent <= share + chunk.length; sent += chunk.length) pushy.socket.send(chunk);
      expect(await closed).toBe(1008);
    });

    it('is refused before it is opened', async () => {
      const front = await start();
      front.views.tell('specs', { rows: [specRow('web'), specRow('bot', { agent })] });
      await settle();
      expect(await refused(attach(front, ['berth.v1']))).toEqual({ status: 409, code: 'not_running' });
      expect(await refused(attach(front, ['berth.v1'], 'web'))).toEqual({
        status: 404,
        code: 'unknown_agent',
      });
      front.views.tell('states', { rows: [runningState('bot', 5)] });
      await settle();
      expect(await refused(attach(front, ['other']))).toEqual({ status: 400, code: 'invalid_spec' });
      expectError(await front.request('GET', '/v1/agents/bot/attach'), 'invalid_spec');
    });
  });
});
