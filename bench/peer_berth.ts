// Berth in the comparison with other supervisors.
import { type Daemon, IDLE, registerMany, startDaemon } from './kit/daemon.ts';
import { subscribe } from './kit/event_subscribers.ts';
import { type Install, SERVICES, TALK, TALKERS } from './peer_interface.ts';

interface Shown {
  name: string;
  status: string;
  pid: number;
}

export const berth: Install = async (folder) => {
  let daemon: Daemon | undefined;
  const ask = (method: string, path: string, body?: unknown): Promise<unknown> => {
    if (!daemon) throw new Error('not started');
    return daemon.ask(method, path, body);
  };
  return {
    name: 'berth',
    async start() {
      daemon = await startDaemon(folder);
    },
    async define() {
      if (daemon) await registerMany(daemon, SERVICES);
      await ask('POST', '/v1/services', { name: 'one', port: 13_901, cwd: '/tmp', cmd: IDLE });
    },
    pids: () => (daemon ? [daemon.pid, daemon.hostPid] : []),
    startOne: () => ask('POST', '/v1/services/one/start?wait=false'),
    pidOfOne: async () => ((await ask('GET', '/v1/services/one')) as Shown).pid,
    stopOne: () => ask('POST', '/v1/services/one/stop'),
    async noticesEnd() {
      const stream = await subscribe(daemon?.port ?? 0, '/v1/events?names=one');
      await stream.until('event: service.crashed');
      stream.end();
    },
    startAll: () => ask('POST', '/v1/groups/bench/start'),
    async startTalkers() {
      for (const [index, name] of TALKERS.entries()) {
        const service = { name, port: 13_910 + index, group: 'talkers', cwd: '/tmp', cmd: TALK };
        await ask('POST', '/v1/services', service);
      }
      await ask('POST', '/v1/groups/talkers/start');
    },
    status: () => ask('GET', '/v1/services'),
    async running() {
      const { services } = (await ask('GET', '/v1/services')) as { services: Shown[] };
      return services
        .filter(({ name, status }) => name !== 'one' && status === 'running')
        .map(({ pid }) => pid);
    },
    async kill() {
      await daemon?.kill();
    },
    async end() {
      await daemon?.end();
    },
  };
};
