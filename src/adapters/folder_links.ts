// The symbolic links in a path.
import { lstatSync, readlinkSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';

/** As many as the system follows. */
const MAX_LINKS = 40;

export interface ResolvedPath {
  /** The path without links. What does not exist stays as it is. */
  path: string;
  /** The links on the way, each without links above it. */
  links: string[];
}

function linkTarget(path: string): string | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : null;
  } catch {
    // It cannot be entered, or has just disappeared.
    return null;
  }
}

/** Yields the paths that a look-up of `path` enters, each before it is looked at. Never throws. */
export function* lookUp(path: string): Generator<string, ResolvedPath> {
  const parts = resolve(path).split('/').filter(Boolean);
  const links: string[] = [];
  let at = '/';
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const next = part === '..' ? dirname(at) : join(at, part);
    yield next;
    const target = part === '..' || links.length >= MAX_LINKS ? null : linkTarget(next);
    if (target === null) {
      at = next;
      continue;
    }
    links.push(next);
    parts.unshift(...target.split('/').filter((one) => one !== '' && one !== '.'));
    if (isAbsolute(target)) at = '/';
  }
  return { path: at, links };
}

/** Follows the links in `path`, as far as they lead. Never throws. */
export function resolveLinks(path: string): ResolvedPath {
  const steps = lookUp(path);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
