// The real cluster for tests: the one that `BERTH_TEST_KUBECONFIG` names, and never another. Without it, the
// tests that need a cluster are skipped by name. Each test file creates a namespace of its own and deletes it.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, TestRunner } from 'vitest';
import { parseKubeconfig } from '../../src/adapters/kube/kubeconfig.ts';
import { afterThisTest } from './actors.ts';
import type { Json } from './kube_double.ts';

const path = process.env['BERTH_TEST_KUBECONFIG'] ?? null;

/** The file `name` beside the cluster's kubeconfig; null where there is none. */
export function clusterFile(name: string): string | null {
  const file = path === null ? null : join(dirname(path), name);
  return file !== null && existsSync(file) ? file : null;
}

/** The kubeconfig text of the local cluster for `token`, `limited` or `admin`; null when there is none. */
export function localKubeconfig(name: string): string | null {
  const file = clusterFile(`${name}.kubeconfig`);
  return file === null ? null : readFileSync(file, 'utf8');
}

export const realKubeconfig: string | null = path === null ? null : readFileSync(path, 'utf8');
/** Like `realKubeconfig`, for tests that only run with a cluster. */
export const kubeconfig = (): string => {
  if (realKubeconfig === null) throw new Error('there is no cluster');
  return realKubeconfig;
};

/** A group of tests on the real cluster. */
export function describeReal(name: string, tests: () => void): void {
  const there = realKubeconfig !== null;
  const reason = there ? '' : ' (skipped: no cluster; BERTH_TEST_KUBECONFIG names one)';
  describe.skipIf(!there)(`${name}${reason}`, tests);
}

/** One call as the administrator. API errors are returned as answers too. */
export function api(
  method: string,
  path: string,
  body?: Json,
  contentType = 'application/json',
): Promise<{ status: number; body: Json }> {
  const access = parseKubeconfig(kubeconfig(), Date.now());
  const { credential } = access;
  const login =
    credential.kind === 'certificate'
      ? { cert: credential.certificate, key: credential.key }
      : { headers: { authorization: `Bearer ${credential.kind === 'token' ? credential.token : ''}` } };
  const text = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(
      new URL(access.server + path),
      {
        method,
        ...(access.ca ? { ca: access.ca } : {}),
        ...login,
        headers: {
          ...login.headers,
          accept: 'application/json',
          ...(text ? { 'content-type': contentType } : {}),
        },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const bytes = Buffer.concat(chunks).toString();
          resolve({
            status: answer.statusCode ?? 0,
            body: bytes.startsWith('{"') ? JSON.parse(bytes.split('\n')[0] ?? '') : bytes,
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(text);
  });
}

/**
 * Creates an object in the collection `path`. It is removed after the test, so that the test can be repeated; what
 * a hook creates is removed with its namespace.
 */
export async function create(path: string, object: Json): Promise<Json> {
  const { status, body } = await api('POST', path, object);
  if (status !== 201) throw new Error(`POST ${path} was answered ${status}: ${JSON.stringify(body)}`);
  const own = `${path}/${object.metadata.name}?propagationPolicy=Background`;
  if (TestRunner.getCurrentTest()) afterThisTest(async () => void (await api('DELETE', own)));
  return body;
}

export interface Sandbox {
  namespace: string;
  path(kind: string, name?: string): string;
  /** As `create` above. */
  create(kind: string, object: Json): Promise<Json>;
  get(kind: string, name: string): Promise<Json>;
  scale(kind: string, name: string, replicas: number): Promise<void>;
  remove(kind: string, name: string): Promise<void>;
}

/** A namespace for this test file, created before its tests and deleted after them. */
export function sandbox(): Sandbox {
  const namespace = `berth-${randomBytes(4).toString('hex')}`;
  const plural = (kind: string): string => `${kind.toLowerCase()}s`;
  const pathOf = (kind: string, name?: string): string =>
    `/apis/apps/v1/namespaces/${namespace}/${plural(kind)}${name === undefined ? '' : `/${name}`}`;
  const good = async (answer: Promise<{ status: number; body: Json }>): Promise<Json> => {
    const { status, body } = await answer;
    if (status >= 300) throw new Error(`${status}: ${JSON.stringify(body)}`);
    return body;
  };
  beforeAll(async () => {
    if (realKubeconfig !== null) await create('/api/v1/namespaces', { metadata: { name: namespace } });
  });
  afterAll(async () => {
    if (realKubeconfig !== null) await api('DELETE', `/api/v1/namespaces/${namespace}`);
  });
  return {
    namespace,
    path: pathOf,
    create: (kind, object) => create(pathOf(kind), object),
    get: async (kind, name) => (await api('GET', pathOf(kind, name))).body,
    async scale(kind, name, replicas) {
      await good(api('PATCH', pathOf(kind, name), { spec: { replicas } }, 'application/merge-patch+json'));
    },
    async remove(kind, name) {
      await good(api('DELETE', `${pathOf(kind, name)}?propagationPolicy=Background`));
    },
  };
}

/** A small workload with the image that every cluster here has; ready as soon as it runs. */
export function sleeper(name: string, replicas: number, more: Json = {}): Json {
  return {
    metadata: { name, ...more.metadata },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      ...more.spec,
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: 'main',
              image: 'busybox:1.35',
              imagePullPolicy: 'IfNotPresent',
              command: ['sh', '-c', 'sleep 1000000'],
              ...more.container,
            },
          ],
        },
      },
    },
  };
}
