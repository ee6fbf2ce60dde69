// The parts of undici that are used, each by itself: all of it takes a thread three times as long to load, and 3 MB more of
// its heap. The package has types for the whole alone.
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';

  /** What `request` of a dispatcher is, which only the whole package gives to each. */
  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData>;
}
