/** Folders of the build with code in them. */
const FOLDERS = ['chunks', 'workers'];

/** The folder of the build, derived from one of its own files or of the folders in it. */
const buildUrl = (here: string): URL =>
  new URL(FOLDERS.includes(here.split('/').at(-2) ?? '') ? '../' : './', here);

/**
 * The entry of a thread or process: `workers/<name>.ts` in the source tree, `workers/<name>.cjs` in the
 * build. `here` is the URL of the calling module.
 */
export function entryUrl(name: string, here: string = import.meta.url): URL {
  if (here.endsWith('.ts')) return new URL(`../../workers/${name}.ts`, here);
  return new URL(`workers/${name}.cjs`, buildUrl(here));
}

/**
 * The folder of the page at `/`. The source tree uses the last build, because a browser cannot load
 * TypeScript.
 */
export const dashboardUrl = (here: string = import.meta.url): URL =>
  here.endsWith('.ts') ? new URL('../../dist/dashboard/', here) : new URL('dashboard/', buildUrl(here));

/** The folder of the rules for screens. */
export const agentRulesUrl = (here: string = import.meta.url): URL =>
  here.endsWith('.ts') ? new URL('../agent-rules/', here) : new URL('agent-rules/', buildUrl(here));

/** The binary `file` of uWebSockets.js. The source tree uses that of the installed package. */
export const nativeUrl = (file: string, here: string = import.meta.url): URL =>
  here.endsWith('.ts')
    ? new URL(`../../node_modules/uWebSockets.js/${file}`, here)
    : new URL(`natives/${file}`, buildUrl(here));
