// A service that watches files, between stand-ins: the watcher tells it of changes when the test says so.
import type { GroupsProtocol } from '../../src/protocol/groups.ts';
import type { WatchSpec } from '../../src/protocol/service.ts';
import type { ThreadsProtocol } from '../../src/protocol/threads.ts';
import type { WatchedServiceProtocol, WatcherProtocol } from '../../src/protocol/watcher.ts';
import { type Plan, quiet, type Supervised, supervise } from './service.ts';

export const WATCH: WatchSpec = {
  paths: ['src'],
  ignore: ['*.log'],
  debounceMs: 300,
  action: 'restart',
  cascade: false,
};

export interface Setting {
  world: Supervised;
  /** The messages to the watcher: what is watched since when, or null for the end. */
  asked: (number | null)[];
  /** Where it is watched. */
  folders: string[];
  cascades: string[];
  threads: string[];
  change(...paths: string[]): Promise<void>;
}

export async function watching(plan: Plan & { watch?: Partial<WatchSpec> } = {}): Promise<Setting> {
  const world = await supervise({ ...plan, spec: { watch: { ...WATCH, ...plan.watch }, ...plan.spec } });
  const asked: Setting['asked'] = [];
  const folders: string[] = [];
  const cascades: string[] = [];
  const threads: string[] = [];
  await world.services.stand<WatcherProtocol>('watcher', {
    watch: ({ cwd, since }) => {
      folders.push(cwd);
      asked.push(since);
      return null;
    },
    unwatch: () => {
      asked.push(null);
      return null;
    },
  });
  await world.services.stand<ThreadsProtocol>('threads', {
    ensure: ({ address }) => {
      threads.push(address);
      return null;
    },
  });
  await world.services.stand<GroupsProtocol>('groups', {
    restartDependants: ({ name }) => {
      cascades.push(name);
      return null;
    },
  });
  await world.begin();
  const ref = world.services.ref<WatchedServiceProtocol>('service:web');
  const change = async (...paths: string[]): Promise<void> => {
    await ref.ask('filesChanged', { paths });
    await quiet();
  };
  return { world, asked, folders, cascades, threads, change };
}

export const start = async ({ clock, ref }: Supervised): Promise<void> => {
  const started = ref.ask('start', { timeoutMs: null, wait: true });
  await quiet();
  await clock.advance(50);
  await started;
  await quiet();
};
