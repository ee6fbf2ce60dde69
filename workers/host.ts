// The entry point of the process host: `node host.cjs <state directory> [<pid of its daemon> <daemon's
// start>]`.
import { startHost } from '../src/host/main.ts';
import { VERSION } from '../src/settings/version.ts';

const [, , stateDir, pid, start] = process.argv;
if (stateDir === undefined) throw new Error('usage: host <state directory> [<daemon> <its start>]');
const startedBy = pid === undefined ? null : { daemonPid: Number(pid), daemonStart: Number(start) };
startHost({ stateDir, version: VERSION, startedBy }).catch((error) => {
  // A host that failed to start must exit, so that another host can take its place.
  console.error(error);
  process.exit(1);
});
