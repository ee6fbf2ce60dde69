// Whether a file exists, when parts of its path are unknown.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** Whether something in `folder` matches `glob`, in which `*` stands for a part of a name. */
export function hasFile(folder: string, glob: string): boolean {
  const [segment = '', ...rest] = glob.split('/');
  const parts = segment.split('*').map((text) => text.replaceAll(/[^A-Za-z0-9_-]/g, '\\$&'));
  const name = new RegExp(`^${parts.join('.*')}$`);
  const found = namesIn(folder).filter((one) => name.test(one));
  return found.some((one) => rest.length === 0 || hasFile(join(folder, one), rest.join('/')));
}
