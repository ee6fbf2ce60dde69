// Where the command line finds this daemon: `<state>/daemon.json`.
import { thisDaemon } from './adapters/host/spawn.ts';
import { report } from './log.ts';
import { removeDaemonFile, writeDaemonFile } from './statedir.ts';
import { VERSION } from './version.ts';

/** A file that could not be written, for want of room, is tried again this often. */
const AGAIN_MS = 2_000;

/** Written at the first `tell` of a port, and again until it is there: no daemon ends because others cannot find it. */
export class DaemonAddress {
  private readonly stateDir: string;
  private port = 0;
  private gatewayPort: number | null;
  private again: NodeJS.Timeout | undefined;

  constructor(stateDir: string, gatewayPort: number | null) {
    this.stateDir = stateDir;
    this.gatewayPort = gatewayPort;
  }

  tell({
    port = this.port,
    gatewayPort = this.gatewayPort,
  }: {
    port?: number;
    gatewayPort?: number | null;
  }): void {
    this.port = port;
    this.gatewayPort = gatewayPort;
    if (port > 0) this.write();
  }

  remove(): void {
    clearTimeout(this.again);
    removeDaemonFile(this.stateDir);
  }

  private write(): void {
    const { port, gatewayPort } = this;
    const { daemonPid: pid, daemonStart: startTime } = thisDaemon();
    const failedBefore = this.again !== undefined;
    clearTimeout(this.again);
    this.again = undefined;
    try {
      writeDaemonFile(this.stateDir, { pid, startTime, port, gatewayPort, version: VERSION });
    } catch (error) {
      if (!failedBefore)
        report(`the command line cannot find this daemon until there is room: ${(error as Error).message}`);
      this.again = setTimeout(() => this.write(), AGAIN_MS);
      this.again.unref();
    }
  }
}
