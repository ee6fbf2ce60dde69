// Pages on disk that redirect a browser to the dashboard. An address with a code must not be an argument of
// the browser, because every user of the machine can read those.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail } from '../../protocol/errors.ts';
import { statePaths } from '../../settings/state_paths.ts';

const DISK_FULL: readonly unknown[] = ['ENOSPC', 'EDQUOT'];

export class RedirectPages {
  private readonly folder: string;
  private readonly earlierPage: string;

  constructor(stateDir: string) {
    const { redirectPages, earlierRedirectPage } = statePaths(stateDir);
    this.folder = redirectPages;
    this.earlierPage = earlierRedirectPage;
  }

  /**
   * Writes the page `name`, which redirects to `url`, and returns its path. `url` must not contain characters
   * special to HTML. Fails storage_full.
   */
  write(name: string, url: string): string {
    const path = this.path(name);
    const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${url}"><title>Berth</title>\n`;
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      writeFileSync(path, page, { mode: 0o600, flag: 'wx' });
      return path;
    } catch (error) {
      this.remove(name);
      if (!(error instanceof Error && 'code' in error && DISK_FULL.includes(error.code))) throw error;
      throw fail('storage_full', 'the page that opens the dashboard cannot be written: the disk is full');
    }
  }

  remove(name: string): void {
    rmSync(this.path(name), { force: true });
  }

  /** Removes files left by a killed daemon or an earlier version. */
  removeAll(): void {
    rmSync(this.folder, { recursive: true, force: true });
    rmSync(this.earlierPage, { force: true });
  }

  private path(name: string): string {
    return join(this.folder, `${name}.html`);
  }
}
