// Features that only Linux offers, with the file that uses each and what is missing without it. `berth
// doctor` and docs/install.md report this table. Everything else is the same on every system.
// docs/reference.md "Platforms".
import { existsSync } from 'node:fs';

export interface PlatformPart {
  name: string;
  /** The only file that uses it, from the root of the repository. */
  adapter: string;
  /** What does not work without it, in one sentence. */
  without: string;
  /** Whether this system has it. */
  isHere: () => boolean;
}

const isLinux = (): boolean => process.platform === 'linux';

export const PLATFORM_PARTS: readonly PlatformPart[] = [
  {
    name: 'the table of processes in /proc',
    adapter: 'src/adapters/process/process_table.ts',
    without:
      'Berth knows only the first process of a service: a stop signals its process group, and misses processes that have left that group.',
    isHere: () => existsSync('/proc/self/stat'),
  },
  {
    name: 'processor time and memory in /proc',
    adapter: 'src/adapters/process/process_usage.ts',
    without: 'Statistics cover only the first process of a service, without its children.',
    isHere: () => existsSync('/proc/uptime'),
  },
  {
    name: 'the table of sockets in /proc/net',
    adapter: 'src/adapters/process/listeners.ts',
    without: 'A port conflict does not name the process that holds the port, and `portFree` is always true.',
    isHere: () => existsSync('/proc/net/tcp'),
  },
  {
    name: 'the sockets of processes in /proc',
    adapter: 'src/adapters/process/socket_holder.ts',
    without: 'The process that holds a port is `unknown`.',
    isHere: () => existsSync('/proc/self/fd'),
  },
  {
    name: 'socket queries over netlink',
    adapter: 'src/adapters/process/libc.ts',
    without:
      'The gateway does not check whose program listens on the port of an agent, and a tether keeps connections of clients that are gone.',
    isHere: isLinux,
  },
  {
    name: 'adoption of orphans (subreaper)',
    adapter: 'src/host/reap_children.ts',
    without: 'Processes whose parent has ended are lost, and Node starts services instead of posix_spawn.',
    isHere: isLinux,
  },
  {
    name: 'control groups',
    adapter: 'src/adapters/process/cgroup.ts',
    without: 'Of the limits of a service only that on memory is enforced, by a check every 2 s.',
    isHere: isLinux,
  },
  {
    name: 'the start lock (abstract sockets)',
    adapter: 'src/adapters/host/host_start.ts',
    without: 'The process host starts before the daemon serves requests, so a first start takes longer.',
    isHere: isLinux,
  },
  {
    name: 'long socket paths through /proc/self/fd',
    adapter: 'src/adapters/host/host_socket.ts',
    without: 'The path of the state directory may have at most 88 bytes.',
    isHere: () => existsSync('/proc/self/fd'),
  },
  {
    name: 'the place of an open directory in /proc/self/fd',
    adapter: 'src/host/moved_directory.ts',
    without: 'A state directory must not be renamed while its services run.',
    isHere: () => existsSync('/proc/self/fd'),
  },
  {
    name: 'the limit of open files in /proc',
    adapter: 'src/adapters/process/open_files_limit.ts',
    without: 'The daemon does not adapt its number of connections to the limit of open files.',
    isHere: () => existsSync('/proc/self/limits'),
  },
  {
    name: 'the open files of processes in /proc',
    adapter: 'src/adapters/process/open_files.ts',
    without: 'The conversation of a codex agent is known only if its hooks report it.',
    isHere: () => existsSync('/proc/self/fd'),
  },
  {
    name: 'the state of threads in /proc',
    adapter: 'src/adapters/process/task_state.ts',
    without:
      'Only missed heartbeats tell a hung thread, so one that waits for a busy processor may be taken for hung.',
    isHere: () => existsSync('/proc/thread-self'),
  },
  {
    name: 'the table of mounts in /proc',
    adapter: 'src/adapters/answering_path.ts',
    without: 'A file system that does not answer hangs what uses its paths.',
    isHere: () => existsSync('/proc/self/mountinfo'),
  },
  {
    name: 'the users of a container in /proc',
    adapter: 'src/settings/trusted_path.ts',
    without:
      'A parent folder of the state directory that belongs to a user outside the container is refused.',
    isHere: () => existsSync('/proc/self/uid_map'),
  },
  {
    name: 'the table of file locks in /proc',
    adapter: 'src/adapters/host/suspended_host.ts',
    without: 'A process host that is suspended is not told from one that does not answer.',
    isHere: () => existsSync('/proc/locks'),
  },
  {
    name: 'the list of users in /etc/passwd',
    adapter: 'src/adapters/process/users.ts',
    without: 'Nothing warns that other users can log in while no token is set.',
    isHere: isLinux,
  },
];
