// The process host's entry: `node host.cjs <state directory> [<pid of the daemon it is for> <its start>]`.
import { startHost } from '../src/host/main.ts';
import { VERSION } from '../src/settings/version.ts';

const [, , stateDir, pid, start] = process.argv;
if (stateDir === undefined) throw new Error('usage: host <state directory> [<daemon> <its start>]');
const startedBy = pid === undefined ? null : { daemonPid: Number(pid), daemonStart: Number(start) };
startHost({ stateDir, version: VERSION, startedBy }).catch((error) => {
  // A host that could not begin must not keep the place of one that can.
  console.error(error);
  process.exit(1);
});
