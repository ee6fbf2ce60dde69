// THIRD_PARTY_LICENSES: every package whose code is part of the build, with its licence.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER_OF_PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

/** The text for a package without a licence file, from its manifest. */
const statement = ({ license, author }) => {
  const holder = typeof author === 'object' ? author.name : author;
  return `Licence: ${license}${holder ? `. Copyright: ${holder}` : ''}`;
};

function entry(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  const text = file ? readFileSync(join(folder, file), 'utf8').trim() : statement(manifest);
  return { title: `${manifest.name} ${manifest.version} (${manifest.license})`, text };
}

/** The text of THIRD_PARTY_LICENSES for the packages that contain `paths`, which are relative to `root`. */
export function thirdPartyLicences(root, paths) {
  const folders = paths
    .flatMap((path) => FOLDER_OF_PACKAGE.exec(path.replace(/^natives:.*/, '')) ?? [])
    .map((path) => join(root, path));
  const entries = [...new Set(folders)].filter((path) => existsSync(join(path, 'package.json'))).map(entry);
  return entries
    .sort((one, other) => (one.title < other.title ? -1 : 1))
    .map(({ title, text }) => `${title}\n${'='.repeat(title.length)}\n\n${text}\n`)
    .join('\n\n');
}
