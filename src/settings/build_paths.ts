/** The folder of the build, from its own files and its `workers` alike. */
const buildUrl = (here: string): URL => new URL(here.split('/').at(-2) === 'workers' ? '../' : './', here);

/**
 * Where the entry of a thread or process is: `workers/<name>.ts` beside the source, `workers/<name>.cjs` in
 * the build, from the build's own folder and from its `workers` alike. `here` is the file that asks.
 */
export function entryUrl(name: string, here: string = import.meta.url): URL {
  if (here.endsWith('.ts')) return new URL(`../../workers/${name}.ts`, here);
  return new URL(`workers/${name}.cjs`, buildUrl(here));
}

/**
 * Where the files of the page at `/` are. A browser cannot read the source: from there it is the last build.
 */
export const dashboardUrl = (here: string = import.meta.url): URL =>
  here.endsWith('.ts') ? new URL('../../dist/dashboard/', here) : new URL('dashboard/', buildUrl(here));
