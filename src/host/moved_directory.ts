// The place of the state directory, which may be renamed while its services run:
// docs/reference.md "Copies of the state directory".
import { openSync, readlinkSync } from 'node:fs';
import { stateDirId } from '../settings/state_paths.ts';

export class MovedDirectory {
  private readonly fd: number;
  private readonly id: string;
  private readonly onMoved: (path: string) => void;
  private current: string;

  /** Throws if there is no directory at `path`. `onMoved` is called with its new path after a rename. */
  constructor(path: string, onMoved: (path: string) => void) {
    this.current = path;
    this.fd = openSync(path, 'r');
    this.id = stateDirId(path);
    this.onMoved = onMoved;
  }

  get path(): string {
    return this.current;
  }

  /** Looks whether it was renamed. The path stays if it was removed, and on systems without /proc (macOS). */
  follow(): void {
    if (this.isAt(this.current)) return;
    const path = this.renamedPath();
    if (path === undefined || !this.isAt(path)) return;
    this.current = path;
    this.onMoved(path);
  }

  private renamedPath(): string | undefined {
    try {
      return readlinkSync(`/proc/self/fd/${this.fd}`);
    } catch {
      return undefined;
    }
  }

  private isAt(path: string): boolean {
    try {
      return stateDirId(path) === this.id;
    } catch {
      return false;
    }
  }
}
