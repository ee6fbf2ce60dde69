// The file through which the command line finds this daemon: `<state>/daemon.json`.
import { thisDaemon } from '../adapters/host/spawn_host.ts';
import { removeAddressFile, writeAddressFile } from '../settings/state_dir.ts';
import { VERSION } from '../settings/version.ts';
import { report } from './daemon_log.ts';

/** Interval between attempts to write the file while the disk is full. */
const RETRY_MS = 2_000;

/**
 * Writes the file at the first `tell` of a port, and retries until it succeeds: a daemon keeps running even
 * if others cannot find it.
 */
export class AddressFile {
  private readonly stateDir: string;
  private readonly isCloudServer: boolean;
  private port = 0;
  private gatewayPort: number | null = null;
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(stateDir: string, isCloudServer: boolean) {
    this.stateDir = stateDir;
    this.isCloudServer = isCloudServer;
  }

  update({
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
    clearTimeout(this.retryTimer);
    removeAddressFile(this.stateDir);
  }

  private write(): void {
    const { port, gatewayPort, isCloudServer } = this;
    const { daemonPid: pid, daemonStart: startTime } = thisDaemon();
    const failedBefore = this.retryTimer !== undefined;
    clearTimeout(this.retryTimer);
    this.retryTimer = undefined;
    try {
      writeAddressFile(this.stateDir, { pid, startTime, port, gatewayPort, version: VERSION, isCloudServer });
    } catch (error) {
      if (!failedBefore)
        report(`the command line cannot find this daemon until there is room: ${(error as Error).message}`);
      this.retryTimer = setTimeout(() => this.write(), RETRY_MS);
      this.retryTimer.unref();
    }
  }
}
