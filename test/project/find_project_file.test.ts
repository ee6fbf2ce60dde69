// Which project file the commands of a folder use.
import { chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findProjectFile } from '../../src/project/find_project_file.ts';
import { tempDir } from '../kit/actors.ts';
import { canBecomeOthers, OTHER_UID } from '../kit/other_user.ts';

/** `top/shared/mine`, and a project file in each folder named. */
function tree(...withFile: string[]) {
  const top = tempDir();
  const at = (...parts: string[]): string => join(top, ...parts);
  mkdirSync(at('shared', 'mine'), { recursive: true });
  for (const folder of withFile) writeFileSync(at(folder, 'berth.yaml'), 'services: {}\n');
  return { at, search: () => findProjectFile(at('shared', 'mine')) };
}

describe('the project file of a folder', () => {
  it('is its own, or the nearest above it', () => {
    const { at, search } = tree('.');
    expect(search()).toEqual({ found: at('berth.yaml'), ignored: [] });
    writeFileSync(at('shared', 'berth.yml'), '');
    expect(search()).toEqual({ found: at('shared/berth.yml'), ignored: [] });
    writeFileSync(at('shared', 'mine', 'berth.yaml'), '');
    expect(search()).toEqual({ found: at('shared/mine/berth.yaml'), ignored: [] });
  });

  const asRoot = it.runIf(canBecomeOthers);

  asRoot('is no file above it of another user, whose commands would be run', () => {
    const { at, search } = tree('.', 'shared');
    chownSync(at('shared/berth.yaml'), OTHER_UID, OTHER_UID);
    expect(search()).toEqual({ found: at('berth.yaml'), ignored: [at('shared/berth.yaml')] });
  });

  asRoot('is no link above it of another user', () => {
    const { at, search } = tree('.');
    symlinkSync('../berth.yaml', at('shared/berth.yaml'));
    lchownSync(at('shared/berth.yaml'), OTHER_UID, OTHER_UID);
    expect(search()).toEqual({ found: at('berth.yaml'), ignored: [at('shared/berth.yaml')] });
  });

  asRoot('may belong to the owner of the folder, as in a container', () => {
    const { at, search } = tree('shared');
    for (const path of ['shared/mine', 'shared/berth.yaml']) chownSync(at(path), OTHER_UID, OTHER_UID);
    expect(search()).toEqual({ found: at('shared/berth.yaml'), ignored: [] });
  });

  asRoot('may belong to another user in the folder itself', () => {
    const { at, search } = tree('shared/mine');
    chownSync(at('shared/mine/berth.yaml'), OTHER_UID, OTHER_UID);
    expect(search()).toEqual({ found: at('shared/mine/berth.yaml'), ignored: [] });
  });
});
