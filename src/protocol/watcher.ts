// The messages of `watcher`, which watches files, and of the services it watches them for.

/** What a service wants watched: docs/reference.md "Watch". */
export interface WatchRequest {
  service: string;
  /** Absolute; globs are relative to it. */
  cwd: string;
  paths: string[];
  /** Lines of a .gitignore in `cwd`; they win over those of real ones. */
  ignore: string[];
  /** Changes are reported when there have been none for so long. */
  debounceMs: number;
  /** Files that changed after this time count as changed, also if that was before. Epoch milliseconds. */
  since: number;
}

/** Whether two requests are about the same files in the same way. */
export const isSameRequest = (a: WatchRequest, b: WatchRequest): boolean =>
  JSON.stringify({ ...a, since: 0 }) === JSON.stringify({ ...b, since: 0 });

/** What is watched at the moment. */
export interface WatchState {
  folders: number;
  /** Why changes may go unnoticed; null: they do not. */
  trouble: string | null;
}

export interface WatcherProtocol {
  /**
   * From now on the service is told of changes. A request that differs in `since` alone changes nothing,
   * unless changes that were reported already are to be told again.
   */
  watch(message: WatchRequest): null;
  unwatch(message: { service: string }): null;
}

/** Handled by `service:<name>`. */
export interface WatchedServiceProtocol {
  /** Files have changed, and none since for `debounceMs`. `paths`: the first of them, relative to `cwd`. */
  filesChanged(message: { paths: string[] }): null;
  watchState(message: WatchState): null;
  /** The watcher has been started anew and knows nothing. */
  watchAgain(message: Record<string, never>): null;
}
