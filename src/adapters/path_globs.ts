// Globs over the files of a folder, for those who walk it. The only file that imports picomatch.
import { dirname, isAbsolute, join, sep } from 'node:path';
import picomatch from 'picomatch';

/** A glob, and the folder that its paths are relative to. */
export interface PathGlob {
  /** Absolute. Everything that matches lies in it. */
  root: string;
  /** Whether the file `path`, relative to `root`, matches, or lies in a folder that does. */
  matches(path: string): boolean;
  /** Whether a file somewhere in the folder `path`, relative to `root`, can match; '' is the root itself. */
  mayContain(path: string): boolean;
}

/** With `s`, `**` also matches a newline in a name. */
const OPTIONS = { dot: true, nonegate: true, flags: 's' } as const;
const GLOBSTAR = '**';

/** Braces that contain a slash span several segments. */
const hasWideBraces = (pattern: string): boolean => /\{[^}]*\//.test(pattern);

/** Returns whether the first `names.length` folders of a path may be `names`. */
function segmentsMayContain(pattern: string): PathGlob['mayContain'] {
  if (hasWideBraces(pattern)) return () => true;
  const segments = pattern
    .split('/')
    .map((segment) => (segment === GLOBSTAR ? GLOBSTAR : picomatch(segment, OPTIONS)));
  return (path) => {
    for (const [index, name] of (path === '' ? [] : path.split(sep)).entries()) {
      const segment = segments[index];
      // Past the last segment, the path is inside a matching folder.
      if (segment === undefined || segment === GLOBSTAR) return true;
      if (!segment(name)) return false;
    }
    return true;
  };
}

/** Splits `pattern` into a folder and the rest: `../lib/*.ts` in `/a/b` becomes `lib/*.ts` in `/a`. */
function rooted(pattern: string, cwd: string): [root: string, rest: string] {
  if (isAbsolute(pattern)) {
    if (pattern.startsWith(`${cwd}/`)) return [cwd, pattern.slice(cwd.length + 1)];
    const { base } = picomatch.scan(pattern);
    const root = base === pattern ? dirname(base) : base;
    return [root, pattern.slice(root.length).replace(/^\/+/, '')];
  }
  const [, up = '', rest = ''] = /^((?:\.\.?(?:\/|$))*)(.*)$/s.exec(pattern) ?? [];
  return [join(cwd, up).replace(/(.)\/$/, '$1'), rest];
}

/** Compiles `pattern`, which is relative to the absolute folder `cwd` unless it is absolute itself. */
export function pathGlob(pattern: string, cwd: string): PathGlob {
  // As in paths, several slashes count as one.
  const [root, rest] = rooted(pattern.replace(/\/{2,}/g, '/'), cwd);
  const glob = rest.replace(/\/+$/, '') || GLOBSTAR;
  const matches = picomatch([glob, `${glob}/${GLOBSTAR}`], OPTIONS);
  return { root, matches: (path) => matches(path), mayContain: segmentsMayContain(glob) };
}
