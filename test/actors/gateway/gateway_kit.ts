import type { Gateway, GatewayDaemon } from '../../../src/actors/gateway/gateway_server.ts';
import { holdPort } from '../../../src/adapters/held_port.ts';
import type { GatewayRoute } from '../../../src/protocol/gateway.ts';

/** Makes `gateway` listen on any port, which it alone holds then. */
export async function listenAnywhere(gateway: Gateway): Promise<number> {
  const held = await holdPort(0, (socket) => socket.destroy());
  if ('refused' in held) throw new Error(held.refused);
  await gateway.listen(held.port, await held.share());
  held.close();
  return held.port;
}

/** The route of an agent `bot` in this process, which listens on `port`. */
export const routeTo = (port: number, more: Partial<GatewayRoute> = {}): GatewayRoute => ({
  hostname: 'bot.agents.localhost',
  name: 'bot',
  isAgent: true,
  port,
  pid: process.pid,
  isDoorOpen: false,
  isAsleep: false,
  isStarting: false,
  hostHeader: null,
  ...more,
});

/** A daemon whose agents do not sleep, and whose gateway is told of every change at once. */
export const quietDaemon: GatewayDaemon = {
  wake: (name) => Promise.reject(new Error(`${name} does not sleep`)),
  update: () => Promise.resolve(),
};
