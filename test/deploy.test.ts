// deploy/ and the program say the same: ports, paths, settings and commands.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { addressCheck } from '../src/adapters/address_rule.ts';
import { COMMAND_TABLE } from '../src/cli/commands.ts';
import { loadCommand } from '../src/cli/kit/command_table.ts';
import { loadSettings, type Settings } from '../src/settings/config.ts';
import { isLoopback } from '../src/settings/loopback.ts';
import { tempDir } from './kit/actors.ts';
import type { Json } from './kit/kube_double.ts';

const DEPLOY = resolve(import.meta.dirname, '../deploy');
const read = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8');
/** As Kubernetes reads it: 0440 is octal. */
const yaml = (text: string): Json => parse(text, { version: '1.1', merge: true });

const base: Json[] = yaml(read('base/kustomization.yaml')).resources.map((name: string) =>
  yaml(read(`base/${name}`)),
);
const ofKind = (kind: string): Json => base.find((object) => object.kind === kind);
const pod = ofKind('Deployment').spec.template.spec;
const [server] = pod.containers;
const CONFIG: string = ofKind('ConfigMap').data['config.toml'];

function settings(): Promise<Settings> {
  const path = join(tempDir(), 'config.toml');
  writeFileSync(path, CONFIG);
  return loadSettings(path, {});
}

describe('the manifests', () => {
  it('have settings that the program accepts, and its ports', async () => {
    const { cloud } = await settings();
    const ports = server.ports.map(({ name, containerPort }: Json) => [name, containerPort]);
    expect(ports).toEqual([
      ['http', cloud.port],
      ['relay', cloud.relay_port],
    ]);
    const service = ofKind('Service').spec.ports;
    expect(service.map(({ name, port, targetPort }: Json) => [name, port, targetPort])).toEqual([
      ['http', cloud.port, 'http'],
      ['relay', cloud.relay_port, 'relay'],
    ]);
    const mounts = new Map(server.volumeMounts.map(({ name, mountPath }: Json) => [name, mountPath]));
    const [key] = pod.volumes.find(({ name }: Json) => name === 'secret').secret.items;
    expect(`${mounts.get('secret')}/${key.path}`).toBe(cloud.key_file);
    expect(pod.volumes.find(({ name }: Json) => name === 'secret').secret.defaultMode).toBe(0o440);
    const environment = new Map(server.env.map(({ name, value }: Json) => [name, value]));
    expect(environment.get('BERTH_CONFIG')).toBe(`${mounts.get('config')}/config.toml`);
    expect(environment.get('BERTH_STATE_DIR')).toBe(`${mounts.get('state')}/state`);
  });

  it('allow API servers in private networks, and none in the pod itself', async () => {
    const { cloud } = await settings();
    const refusal = addressCheck({ allow: cloud.allow_addresses, apiOnLoopback: isLoopback(cloud.bind) });
    expect(['10.0.0.1', '192.0.2.7', 'fd00::1'].map(refusal)).toEqual([null, null, null]);
    expect(['127.0.0.1', '::1'].map(refusal)).not.toContain(null);
  });

  it('run commands that exist', async () => {
    for (const { args } of [...pod.containers, ...pod.initContainers])
      expect([args, await loadCommand(COMMAND_TABLE, args)]).toEqual([args, expect.anything()]);
    expect(yaml(/^CMD (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '')).toEqual(server.args);
  });

  it('use the user of the image, and a read-only root file system', () => {
    const { runAsUser, runAsGroup, fsGroup, runAsNonRoot } = pod.securityContext;
    expect(read('Dockerfile')).toContain(`USER ${runAsUser}:${runAsGroup}\n`);
    expect([fsGroup, runAsNonRoot]).toEqual([runAsGroup, true]);
    for (const { securityContext } of [...pod.containers, ...pod.initContainers])
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
  });
});

describe('the chart', () => {
  const values = yaml(read('chart/values.yaml'));
  const templates = readdirSync(join(DEPLOY, 'chart/templates')).map((name) =>
    read(`chart/templates/${name}`),
  );

  it('has the same objects, configuration and replicas as the base', () => {
    const kinds = templates.flatMap((text) => /^kind: (\w+)$/m.exec(text)?.[1] ?? []);
    // The namespace is that of the release.
    const wanted = base.map(({ kind }) => kind).filter((kind) => kind !== 'Namespace');
    expect(kinds.toSorted()).toEqual([...wanted, 'Ingress', 'ServiceMonitor'].toSorted());
    expect(values.config).toBe(CONFIG);
    expect(values.replicas).toBe(ofKind('Deployment').spec.replicas);
    expect(values.resources).toEqual(server.resources);
  });

  it('names the role that the token of its ServiceMonitor needs', () => {
    const [, comment = ''] = /((?:^#.*\n)+)serviceMonitor:$/m.exec(read('chart/values.yaml')) ?? [];
    expect(comment).toContain('viewer of all clusters');
    expect(comment).toContain('`berth k8s tokens create prometheus --role viewer`');
  });

  it('uses every value that it documents, and no other', () => {
    const used = new Set(
      templates.flatMap((text) => [...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = '']) => path)),
    );
    const known = (path: string): boolean =>
      path.split('.').reduce<Json>((at, name) => at?.[name], values) !== undefined;
    expect([...used].filter((path) => !known(path))).toEqual([]);
    const roots = new Set([...used].map((path) => path.split('.')[0]));
    expect(Object.keys(values).filter((name) => !roots.has(name))).toEqual([]);
  });
});
