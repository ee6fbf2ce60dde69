// Helm's post-renderer in tests. A cluster for tests can pull no image: the containers of the Deployment run the
// build of this checkout with this machine's Node, which are mounted into an image that the cluster has.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';

const IMAGE = 'busybox:1.35';
const PROGRAM = '/opt/berth';
const MOUNTS = [
  ['usr', '/usr', '/usr'],
  ['lib', '/usr/lib', '/lib'],
  ['lib64', '/usr/lib64', '/lib64'],
  ['program', process.env.BERTH_ROOT, PROGRAM],
];

function withProgram(container) {
  const mounts = MOUNTS.map(([name, , mountPath]) => ({ name, mountPath, readOnly: true }));
  return {
    ...container,
    image: IMAGE,
    command: [process.execPath, join(PROGRAM, 'dist/bin.cjs')],
    volumeMounts: [...container.volumeMounts, ...mounts],
  };
}

function rendered(object) {
  if (object.kind !== 'Deployment') return object;
  const { spec } = object.spec.template;
  spec.initContainers = spec.initContainers.map(withProgram);
  spec.containers = spec.containers.map(withProgram);
  spec.volumes.push(...MOUNTS.map(([name, path]) => ({ name, hostPath: { path } })));
  return object;
}

// As Kubernetes reads it: 0440 is octal.
const objects = parseAllDocuments(readFileSync(0, 'utf8'), { version: '1.1', merge: true });
const output = objects.map((document) =>
  stringify(rendered(document.toJS()), { aliasDuplicateObjects: false }),
);
process.stdout.write(output.join('---\n'));
