// docs/reference.md "System endpoints": the schema beside a project file.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectSchemaText, writeProject } from '../../src/project/write_project.ts';
import { tempDir } from '../kit/actors.ts';

describe('the schema of a project file', () => {
  it('takes the place of a link, and not that of the file it leads to', () => {
    const folder = tempDir();
    const precious = join(tempDir(), 'precious');
    writeFileSync(precious, 'mine');
    mkdirSync(join(folder, '.berth'));
    const schema = join(folder, '.berth/berth.schema.json');
    symlinkSync(precious, schema);
    writeProject(join(folder, 'berth.yaml'), 'services: {}\n');
    expect(readFileSync(precious, 'utf8')).toBe('mine');
    expect(lstatSync(schema).isFile()).toBe(true);
    expect(readFileSync(schema, 'utf8')).toBe(projectSchemaText());
  });

  it('is not written into another folder', () => {
    const folder = tempDir();
    const elsewhere = tempDir();
    symlinkSync(elsewhere, join(folder, '.berth'));
    const path = join(folder, 'berth.yaml');
    expect(() => writeProject(path, 'services: {}\n')).toThrow(
      '.berth: is a link, and not a folder: remove it',
    );
    expect([readdirSync(elsewhere), existsSync(path)]).toEqual([[], false]);
  });

  it('is written through a link to the project itself', () => {
    const folder = tempDir();
    const link = join(tempDir(), 'link');
    symlinkSync(folder, link);
    writeProject(join(link, 'berth.yaml'), 'services: {}\n');
    expect(existsSync(join(folder, '.berth/berth.schema.json'))).toBe(true);
  });
});
