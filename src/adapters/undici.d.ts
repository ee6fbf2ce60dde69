// The modules of undici that are used. The whole package takes three times as long to load, and 3 MB more of
// a thread's heap, but only the whole package has types.
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';

  /** The `request` of a dispatcher, a method that only the whole package adds. */
  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData>;
}
