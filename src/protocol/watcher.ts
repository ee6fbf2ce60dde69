// The messages of `watcher`, which watches files, and of the services it watches them for.

/** What a service wants to have watched: docs/reference.md "Watch". */
export interface WatchRequest {
  service: string;
  /** Absolute; globs are relative to it. */
  cwd: string;
  paths: string[];
  /** Lines of .gitignore syntax for `cwd`; they override those of real files. */
  ignore: string[];
  /** Changes are reported once there have been none for this many milliseconds. */
  debounceMs: number;
  /** Files modified after this time count as changed, even before the request. Epoch milliseconds. */
  since: number;
}

/** Whether two requests are about the same files in the same way. */
export const isSameRequest = (a: WatchRequest, b: WatchRequest): boolean =>
  JSON.stringify({ ...a, since: 0 }) === JSON.stringify({ ...b, since: 0 });

/**
 * Whether files are watched after the end of its last process, so that a change starts the service: nobody
 * has stopped it since.
 */
export const isWatchedAfter = ({ status, unasked }: { status: string; unasked?: true }): boolean =>
  status === 'crashed' || unasked === true;

/** What is watched at the moment. */
export interface WatchState {
  folders: number;
  /** Why changes may be missed; null: they are not. */
  trouble: string | null;
}

export interface WatcherProtocol {
  /**
   * From now on the service is told of changes. A repeated request that differs only in `since` has no
   * effect, unless its `since` asks for changes again that have already been reported.
   */
  watch(message: WatchRequest): null;
  unwatch(message: { service: string }): null;
}

/** Handled by `service:<name>`. */
export interface WatchedServiceProtocol {
  /** Files have changed, and none since for `debounceMs`. `paths`: the first of them, relative to `cwd`. */
  filesChanged(message: { paths: string[] }): null;
  watchState(message: WatchState): null;
  /** The watcher has restarted and has lost all requests. */
  watchAgain(message: Record<string, never>): null;
  /** The services that depend on it know that they are restarted. */
  cascadeKnown(message: Record<string, never>): null;
}
