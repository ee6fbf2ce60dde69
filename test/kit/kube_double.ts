// An API server on the wire, for faults that a real one does not produce on demand: the same lists, watches,
// patches and errors over real TLS, and scripted failures. `kube_double.test.ts` compares it with a real
// server.
import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { Socket } from 'node:net';
import type { ClusterAccess } from '../../src/protocol/clusters.ts';
import type { WorkloadKind } from '../../src/protocol/workload_kinds.ts';
import { certificate } from './certificates.ts';
import { serveEchoingPods } from './echoing_pods.ts';
import { applyJsonPatch, PatchFailed } from './json_patch.ts';
import { podsOf, replicaSetOf } from './kube_double_pods.ts';
import { restartablePort } from './restartable_port.ts';

/** JSON of the API, as tests write and read it. */
export type Json = any;

export interface Seen {
  method: string;
  path: string;
  query: URLSearchParams;
  body: Json;
  /** The body as it was sent. */
  text: string;
  contentType: string | undefined;
}

/**
 * The fault of a request. `lost`: the request takes effect, and the connection breaks before the response.
 * `late` and `held`: it takes effect later, also when nobody waits for the response any more.
 */
export type Fault =
  | { kind: 'status'; status: number; reason?: string; message?: string; headers?: Record<string, string> }
  | { kind: 'raw'; status: number; headers: Record<string, string>; body: string }
  | { kind: 'reset' | 'stall' | 'lost' | 'endless' | 'not http' | 'interim' }
  | { kind: 'late'; ms: number }
  | { kind: 'held'; until: Promise<void> };

/** An open watch, driven by hand. */
export interface OpenWatch {
  plural: string;
  query: URLSearchParams;
  write(text: string): void;
  error(status: number, reason: string): void;
  bookmark(): void;
  /** Ends it in order, as after timeoutSeconds. */
  end(): void;
  reset(): void;
  /** Sends nothing on it from now on. */
  stall(): void;
}

export interface Double {
  port: number;
  access: ClusterAccess;
  kubeconfig: string;
  requests: Seen[];
  watches: OpenWatch[];
  /** How many connections were made to it, and how many of them resumed an earlier TLS session. */
  readonly connections: number;
  readonly resumedSessions: number;
  /** Denied actions, such as `patch deployments`. */
  denied: Set<string>;
  /** The size in bytes of the pieces that watch events are cut into. */
  cut: number | null;
  get(kind: WorkloadKind, namespace: string, name: string): Json;
  /** Creates an object, or replaces it (with a new uid when `renew`). */
  put(kind: WorkloadKind, object: Json, renew?: boolean): void;
  /** Changes an object from outside. */
  change(kind: WorkloadKind, namespace: string, name: string, change: (object: Json) => void): void;
  remove(kind: WorkloadKind, namespace: string, name: string): void;
  /** Applies `fault` to the next `times` requests that `fits`. */
  fault(fits: (request: Seen) => boolean, fault: Fault, times?: number): void;
  /** Forgets all past events and continue tokens: a client that resumes from before gets 410. */
  compact(): void;
  /** Goes back to an earlier version, as after a restore from a backup. */
  rewind(version: number): void;
  /** Changes what a patch is about to store, as a mutating admission webhook would. */
  onAdmission: ((object: Json) => void) | null;
  /** Runs at once after each change by a request, as another controller would. */
  onPatched: ((kind: WorkloadKind, object: Json) => void) | null;
  /** The pods of a workload; by default those that its status counts. */
  podsOf: (kind: WorkloadKind, object: Json) => Json[];
  /** The ReplicaSets of a Deployment; by default one that is settled. */
  replicaSetsOf: (deployment: Json) => Json[];
  /** From now on, its pods send back what they get, at every port. */
  echoFromPods(): void;
  /** Events of all namespaces. */
  events: Json[];
  namespaces: string[];
  /** The annotations of namespaces. */
  namespaceAnnotations: Map<string, Record<string, string>>;
  /** Namespaces in which everything is allowed that `denied` denies for all of them. */
  allowedIn: Set<string>;
  /** Accepts no token any more. */
  isRevoked: boolean;
  /** Has it accept tokens of a ServiceAccount that live for so long (seconds) from `now` (epoch ms) on. */
  accountToken(now: number, lifetimeS: number, name?: string, namespace?: string): string;
  /** Objects of accounts by their paths: applied, read and deleted. */
  manifests: Map<string, Json>;
  /** The clock by which it makes tokens when it is asked for one. */
  now: () => number;
  addAutoscaler(
    namespace: string,
    name: string,
    kind: WorkloadKind,
    target: string,
    maxReplicas?: number,
    scaledObject?: string,
  ): void;
  stop(): Promise<void>;
  start(): Promise<void>;
}

const KINDS: Readonly<Record<string, WorkloadKind>> = {
  deployments: 'Deployment',
  statefulsets: 'StatefulSet',
};
const pluralOf = (kind: WorkloadKind): string => (kind === 'Deployment' ? 'deployments' : 'statefulsets');

/** A workload as the API shows it, managed fields included. `ready` pods exist at once. */
export function workload(
  namespace: string,
  name: string,
  replicas: number,
  more: { labels?: Json; spec?: Json } = {},
): Json {
  return {
    metadata: {
      name,
      namespace,
      labels: { app: name, ...more.labels },
      annotations: { 'deployment.kubernetes.io/revision': '1' },
      managedFields: [
        {
          manager: 'kubectl-client-side-apply',
          operation: 'Update',
          apiVersion: 'apps/v1',
          time: '2026-11-20T11:00:00Z',
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:spec': {
              'f:replicas': {},
              'f:selector': {},
              'f:template': { 'f:spec': { 'f:containers': {} } },
            },
          },
        },
        {
          manager: 'kube-controller-manager',
          operation: 'Update',
          apiVersion: 'apps/v1',
          time: '2026-11-20T11:00:01Z',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:status': { 'f:replicas': {}, 'f:readyReplicas': {}, 'f:conditions': {} } },
        },
      ],
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { creationTimestamp: null, labels: { app: name } },
        spec: {
          containers: [
            {
              name: 'main',
              image: 'busybox:1.35',
              command: ['sh', '-c', 'sleep 1000000'],
              resources: {},
              imagePullPolicy: 'IfNotPresent',
            },
          ],
          restartPolicy: 'Always',
          dnsPolicy: 'ClusterFirst',
          securityContext: {},
          schedulerName: 'default-scheduler',
        },
      },
      ...more.spec,
    },
    status: statusOf(replicas),
  };
}

/** Omits zeros, as the server does. */
export const statusOf = (replicas: number, ready = replicas): Json => ({
  observedGeneration: 1,
  ...(replicas > 0 ? { replicas, updatedReplicas: replicas } : {}),
  ...(ready > 0 ? { readyReplicas: ready, availableReplicas: ready } : {}),
});

function status(code: number, reason: string, message: string, more: Json = {}): Json {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...more,
    code,
  };
}

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`;

interface Event {
  version: number;
  plural: string;
  namespace: string;
  line: string;
}

class Server implements Double {
  port = 0;
  readonly requests: Seen[] = [];
  readonly watches: OpenWatch[] = [];
  connections = 0;
  resumedSessions = 0;
  readonly denied = new Set<string>();
  cut: number | null = null;
  onAdmission: Double['onAdmission'] = null;
  onPatched: Double['onPatched'] = null;
  podsOf: Double['podsOf'] = podsOf;
  replicaSetsOf: Double['replicaSetsOf'] = (deployment) => [replicaSetOf(deployment)];
  readonly events: Json[] = [];
  readonly namespaces: string[] = [];
  readonly namespaceAnnotations = new Map<string, Record<string, string>>();
  readonly allowedIn = new Set<string>();
  isRevoked = false;
  now = Date.now;
  readonly manifests = new Map<string, Json>();
  private hasEchoingPods = false;
  private readonly token = randomBytes(16).toString('hex');
  private readonly tokens = new Set([this.token]);
  private readonly ca = certificate({ commonName: `double ca ${randomUUID()}` });
  private readonly leaf = certificate({
    commonName: 'double',
    issuer: this.ca,
    names: ['127.0.0.1', 'localhost'],
  });
  private readonly objects = new Map(Object.keys(KINDS).map((plural) => [plural, new Map<string, Json>()]));
  private readonly autoscalers: Json[] = [];
  private watchEvents: Event[] = [];
  private version = 100;
  private oldest = 100;
  private listeners = new Set<(event: Event) => void>();
  private faults: { fits: (request: Seen) => boolean; fault: Fault; times: number }[] = [];
  private server = this.create();
  private readonly sockets = new Set<Socket>();
  /** TCP sockets by the client's port: only these can be reset. */
  private readonly raw = new Map<number, Socket>();

  get access(): ClusterAccess {
    return {
      server: `https://127.0.0.1:${this.port}`,
      ca: this.ca.cert,
      tlsServerName: null,
      namespace: null,
      credential: { kind: 'token', token: this.token },
    };
  }

  get kubeconfig(): string {
    const data = Buffer.from(this.ca.cert).toString('base64');
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'd',
      contexts: [{ name: 'd', context: { cluster: 'd', user: 'd' } }],
      clusters: [{ name: 'd', cluster: { server: this.access.server, 'certificate-authority-data': data } }],
      users: [{ name: 'd', user: { token: this.token } }],
    });
  }

  get(kind: WorkloadKind, namespace: string, name: string): Json {
    return this.of(pluralOf(kind)).get(keyOf(namespace, name));
  }

  put(kind: WorkloadKind, object: Json, renew = false): void {
    const { namespace, name } = object.metadata;
    const before = this.get(kind, namespace, name);
    const uid = !renew && before ? before.metadata.uid : randomUUID();
    this.store(kind, { ...object, metadata: { ...object.metadata, uid } }, before ? 'MODIFIED' : 'ADDED');
  }

  change(kind: WorkloadKind, namespace: string, name: string, change: (object: Json) => void): void {
    const object = structuredClone(this.get(kind, namespace, name));
    change(object);
    this.store(kind, object, 'MODIFIED');
  }

  remove(kind: WorkloadKind, namespace: string, name: string): void {
    const object = this.get(kind, namespace, name);
    this.of(pluralOf(kind)).delete(keyOf(namespace, name));
    this.tell(pluralOf(kind), 'DELETED', this.stamped(kind, object));
  }

  private accountAnswer({ path, method, query, body, contentType }: Seen): [number, Json] | null {
    const [, namespace = '', name] =
      /^\/api\/v1\/namespaces\/([^/]+)\/serviceaccounts\/([^/]+)\/token$/.exec(path) ?? [];
    if (name !== undefined && this.isDenied('create serviceaccounts/token', namespace))
      return [403, status(403, 'Forbidden', `serviceaccounts "${name}" is forbidden`)];
    if (name !== undefined) {
      // Whoever still uses an earlier token is found out.
      this.tokens.clear();
      this.tokens.add(this.token);
      const token = this.accountToken(this.now(), body.spec.expirationSeconds, name, namespace);
      return [201, { status: { token } }];
    }
    const rights = /^\/apis\/rbac\.authorization\.k8s\.io\/v1\/([a-z]+)$/.exec(path)?.[1];
    if (rights !== undefined && this.isDenied(`list ${rights}`, ''))
      return [403, status(403, 'Forbidden', `${rights} is forbidden`)];
    if (rights !== undefined) {
      const end = `/${rights}/${query.get('fieldSelector')?.replace('metadata.name=', '')}`;
      const items = [...this.manifests].flatMap(([key, object]) => (key.endsWith(end) ? [object] : []));
      return [200, { metadata: { resourceVersion: '1' }, items }];
    }
    const object = this.changedManifest({ path, body, contentType }) ?? this.manifests.get(path);
    if (method === 'DELETE') this.manifests.delete(path);
    if (object) return [200, object];
    if (method === 'GET' && /^\/api\/v1\/namespaces\/berth\/[a-z]+$/.test(path)) return [200, { items: [] }];
    return method === 'DELETE' ? [404, status(404, 'NotFound', 'not found')] : null;
  }

  /** The object after a patch: applying it keeps the annotations of merge patches. */
  private changedManifest({ path, body, contentType }: Pick<Seen, 'path' | 'body' | 'contentType'>) {
    const before = this.manifests.get(path);
    if (before && contentType === 'application/merge-patch+json') {
      for (const [key, value] of Object.entries(body.metadata.annotations))
        if (value === null) delete before.metadata.annotations[key];
        else before.metadata.annotations[key] = value;
      return before;
    }
    if (contentType !== 'application/apply-patch+yaml') return undefined;
    const kept = Object.entries(before?.metadata.annotations ?? {}).filter(([key]) =>
      key.includes('used-by'),
    );
    const annotations = { ...body.metadata.annotations, ...Object.fromEntries(kept) };
    const object = { ...body, metadata: { ...body.metadata, annotations, uid: 'the-uid' } };
    this.manifests.set(path, object);
    return object;
  }

  accountToken(now: number, lifetimeS: number, name = 'berth-ada', namespace = 'berth'): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const iat = Math.floor(now / 1_000);
    const claims = {
      ...{ iat, exp: iat + lifetimeS, jti: randomUUID(), sub: `system:serviceaccount:${namespace}:${name}` },
      'kubernetes.io': { namespace, serviceaccount: { name, uid: 'the-uid' } },
    };
    const token = `${part({ alg: 'RS256' })}.${part(claims)}.${randomBytes(8).toString('base64url')}`;
    this.tokens.add(token);
    return token;
  }

  fault(fits: (request: Seen) => boolean, fault: Fault, times = 1): void {
    this.faults.push({ fits, fault, times });
  }

  compact(): void {
    this.watchEvents = [];
    this.oldest = this.version;
  }

  rewind(version: number): void {
    this.version = version;
    this.oldest = version;
    this.watchEvents = [];
  }

  addAutoscaler(
    namespace: string,
    name: string,
    kind: WorkloadKind,
    target: string,
    maxReplicas = 5,
    scaledObject?: string,
  ): void {
    const owner = {
      apiVersion: 'keda.sh/v1alpha1',
      kind: 'ScaledObject',
      name: scaledObject,
      controller: true,
    };
    this.autoscalers.push({
      metadata: { name, namespace, ...(scaledObject && { ownerReferences: [owner] }) },
      spec: { maxReplicas, scaleTargetRef: { apiVersion: 'apps/v1', kind, name: target } },
    });
  }

  echoFromPods(): void {
    this.hasEchoingPods = true;
    serveEchoingPods(this.server);
  }

  async start(): Promise<void> {
    this.server = this.create();
    this.port ||= await restartablePort();
    await new Promise<void>((resolve) => this.server.listen(this.port, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    // A connection in its TLS handshake is among the raw ones alone.
    for (const socket of [...this.sockets, ...this.raw.values()]) socket.destroy();
    await closed;
  }

  private create() {
    const server = createServer({ cert: this.leaf.cert, key: this.leaf.key }, (request, response) => {
      void this.answer(request, response);
    });
    if (this.hasEchoingPods) serveEchoingPods(server);
    server.on('connection', (socket) => {
      if (socket instanceof Socket) this.raw.set(socket.remotePort ?? 0, socket);
    });
    server.on('secureConnection', (socket) => {
      this.connections += 1;
      if (socket.isSessionReused()) this.resumedSessions += 1;
      this.sockets.add(socket);
      const { remotePort = 0 } = socket;
      socket
        .on('error', () => undefined)
        .on('close', () => {
          this.sockets.delete(socket);
          this.raw.delete(remotePort);
        });
    });
    return server;
  }

  private of(plural: string): Map<string, Json> {
    return this.objects.get(plural) ?? new Map();
  }

  private stamped(kind: WorkloadKind, object: Json): Json {
    this.version += 1;
    const { metadata, ...rest } = object;
    return {
      kind,
      apiVersion: 'apps/v1',
      metadata: { ...metadata, resourceVersion: String(this.version) },
      ...rest,
    };
  }

  private store(kind: WorkloadKind, object: Json, type: string): Json {
    const { kind: _, apiVersion: __, ...plain } = object;
    const before = this.get(kind, plain.metadata.namespace, plain.metadata.name);
    const isNew = before?.metadata.uid !== plain.metadata.uid;
    const isSpecced = JSON.stringify(before?.spec) !== JSON.stringify(plain.spec);
    const generation = isNew ? 1 : before.metadata.generation + (isSpecced ? 1 : 0);
    // A manager that writes a status has seen the spec.
    const isSeen = isNew || JSON.stringify(before.status) !== JSON.stringify(plain.status);
    const stored = this.stamped(kind, {
      ...plain,
      metadata: { ...plain.metadata, generation },
      status: isSeen ? { ...plain.status, observedGeneration: generation } : plain.status,
    });
    this.of(pluralOf(kind)).set(keyOf(stored.metadata.namespace, stored.metadata.name), stored);
    this.tell(pluralOf(kind), type, stored);
    return stored;
  }

  private tell(plural: string, type: string, object: Json): void {
    const { namespace } = object.metadata;
    const event = {
      version: this.version,
      plural,
      namespace,
      line: `${JSON.stringify({ type, object })}\n`,
    };
    this.watchEvents.push(event);
    for (const listener of [...this.listeners]) listener(event);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const url = new URL(request.url ?? '/', 'https://double');
    const text = Buffer.concat(chunks).toString();
    const seen: Seen = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      body: text === '' ? null : JSON.parse(text),
      text,
      contentType: request.headers['content-type'],
    };
    this.requests.push(seen);
    const isKnown = !this.isRevoked && this.tokens.has(request.headers.authorization?.slice(7) ?? '');
    const row = this.faults.find(({ fits, times }) => times > 0 && fits(seen));
    if (row) row.times -= 1;
    if (row && (await this.goWrong(row.fault, seen, response))) return;
    const [code, body] = isKnown
      ? this.handle(seen, response)
      : [401, status(401, 'Unauthorized', 'Unauthorized')];
    if (code !== 0) this.send(response, code, body);
  }

  /** True when the request has been handled. */
  private async goWrong(fault: Fault, seen: Seen, response: ServerResponse): Promise<boolean> {
    const reset = (): boolean =>
      this.raw.get(response.socket?.remotePort ?? 0)?.resetAndDestroy() !== undefined;
    switch (fault.kind) {
      case 'status': {
        const body = status(fault.status, fault.reason ?? '', fault.message ?? '');
        this.send(response, fault.status, body, fault.headers);
        return true;
      }
      case 'raw':
        response.writeHead(fault.status, fault.headers).end(fault.body);
        return true;
      case 'reset':
        return reset();
      case 'lost':
        this.handle(seen, response);
        return reset();
      case 'endless': {
        response.writeHead(200, { 'content-type': 'application/json' });
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        };
        response.on('drain', more);
        more();
        return true;
      }
      case 'not http':
        response.socket?.end('220 this speaks SMTP\r\n');
        return true;
      case 'interim':
        response.socket?.write('HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n'.repeat(100));
        return true;
      case 'late':
        await new Promise((resolve) => setTimeout(resolve, fault.ms));
        return false;
      case 'held':
        await fault.until;
        return false;
      default:
        return true;
    }
  }

  private send(
    response: ServerResponse,
    code: number,
    body: Json,
    headers: Record<string, string> = {},
  ): void {
    response.writeHead(code, {
      'content-type': 'application/json',
      warning: '299 - "a warning"',
      ...headers,
    });
    response.end(JSON.stringify(body));
  }

  /** Status and body; 0 when the response is already under way. */
  private handle(seen: Seen, response: ServerResponse): [number, Json] {
    const { path, query, method } = seen;
    if (path === '/version') return [200, { major: '1', minor: '33', gitVersion: 'v1.33.0-double' }];
    if (path.endsWith('/selfsubjectaccessreviews')) return [201, this.review(seen.body)];
    if (path.endsWith('/selfsubjectrulesreviews')) return [201, this.rules(seen.body)];
    const account = this.accountAnswer(seen);
    if (account) return account;
    const extra = this.answerExtra(path, query);
    if (extra) return extra;
    const scalers = /^\/apis\/autoscaling\/v1\/namespaces\/([^/]+)\/horizontalpodautoscalers$/.exec(path);
    if (scalers)
      return [
        200,
        {
          metadata: { resourceVersion: '1' },
          items: this.autoscalers.filter((row) => row.metadata.namespace === scalers[1]),
        },
      ];
    const all = /^\/apis\/apps\/v1(?:\/namespaces\/([^/]+))?\/(deployments|statefulsets)$/.exec(path);
    const one = /^\/apis\/apps\/v1\/namespaces\/([^/]+)\/(deployments|statefulsets)\/([^/]+)$/.exec(path);
    const plural = all?.[2] ?? one?.[2] ?? '';
    const scope = all?.[1] ?? '';
    const verb = one ? method.toLowerCase() : query.get('watch') ? 'watch' : 'list';
    const name = one?.[3] ?? '';
    if (this.isDenied(`${verb} ${plural}`, one?.[1] ?? scope)) {
      const place = one?.[1] ?? scope;
      const where = place ? `in the namespace "${place}"` : 'at the cluster scope';
      const message = `${plural}.apps ${name && `"${name}" `}is forbidden: User "double" cannot ${verb} resource "${plural}" in API group "apps" ${where}`;
      return [
        403,
        status(403, 'Forbidden', message, {
          details: { ...(name ? { name } : {}), group: 'apps', kind: plural },
        }),
      ];
    }
    if (verb === 'watch') return this.watch(plural, scope, query, response);
    if (all) return this.list(plural, scope, query);
    const object = this.of(plural).get(keyOf(one?.[1] ?? '', name));
    if (!object || !one)
      return [
        404,
        status(404, 'NotFound', `${plural}.apps "${name}" not found`, {
          details: { name, group: 'apps', kind: plural },
        }),
      ];
    return method === 'GET' ? [200, object] : this.patch(plural, object, seen);
  }

  private isDenied(right: string, namespace: string): boolean {
    return this.denied.has(right) && !this.allowedIn.has(namespace);
  }

  private review(body: Json): Json {
    const { verb, resource, subresource, namespace = '' } = body.spec.resourceAttributes;
    const right = `${verb} ${[resource, subresource].filter(Boolean).join('/')}`;
    const allowed = !this.isDenied(right, namespace);
    return { ...body, metadata: { creationTimestamp: null }, status: { allowed } };
  }

  private rules(body: Json): Json {
    const may = (verb: string, resource: string): string[] =>
      this.isDenied(`${verb} ${resource}`, body.spec.namespace) ? [] : [verb];
    const rule = (apiGroup: string, resource: string, verbs: string[]): Json => ({
      verbs: verbs.flatMap((verb) => may(verb, resource)),
      apiGroups: [apiGroup],
      resources: [resource],
    });
    const verbs = ['get', 'list', 'watch', 'patch', 'create'];
    const resourceRules = [
      rule('apps', 'deployments', verbs),
      rule('apps', 'statefulsets', verbs),
      rule('', 'pods', verbs),
      rule('', 'pods/portforward', verbs),
    ];
    return { ...body, status: { incomplete: false, nonResourceRules: [], resourceRules } };
  }

  /** Collections that are not followed here: pods, ReplicaSets, events and namespaces. */
  private answerExtra(path: string, query: URLSearchParams): [number, Json] | null {
    const found =
      /^\/api(?:s\/apps)?\/v1(?:\/namespaces\/([^/]+))?\/(pods|replicasets|events|namespaces)$/.exec(path);
    if (!found) return null;
    const [, namespace = '', plural = ''] = found;
    if (this.isDenied(`list ${plural}`, namespace))
      return [
        403,
        status(403, 'Forbidden', `${plural} is forbidden: User "double" cannot list resource "${plural}"`),
      ];
    const items = this.extraItems(plural, namespace, query);
    return [200, { metadata: { resourceVersion: String(this.version) }, items }];
  }

  private extraItems(plural: string, namespace: string, query: URLSearchParams): Json[] {
    if (plural === 'namespaces') {
      const names = new Set([...this.namespaces, ...this.namespaceAnnotations.keys()]);
      return [...names].map((name) => ({
        metadata: { name, annotations: this.namespaceAnnotations.get(name) },
      }));
    }
    const within = (object: Json): boolean => !namespace || object.metadata.namespace === namespace;
    if (plural === 'events') {
      const fields = (query.get('fieldSelector') ?? '').split(',').map((field) => field.split('='));
      return this.events
        .filter(within)
        .filter((event) =>
          fields.every(
            ([field = '', value]) =>
              field === '' || field.split('.').reduce((part, word) => part?.[word], event) === value,
          ),
        );
    }
    const selector = query.get('labelSelector') ?? '';
    const matches = (object: Json): boolean =>
      selector.split(',').every((word) => {
        const [key = '', value] = word.split('=');
        return key === '' || object.metadata.labels?.[key] === value;
      });
    const made = Object.entries(KINDS).flatMap(([name, kind]) =>
      [...this.of(name).values()].flatMap((object) => {
        if (plural === 'pods') return this.podsOf(kind, object);
        return kind === 'Deployment' ? this.replicaSetsOf(object) : [];
      }),
    );
    return made.filter((object) => within(object) && matches(object));
  }

  private list(plural: string, namespace: string, query: URLSearchParams): [number, Json] {
    const limit = Number(query.get('limit') ?? 0);
    const token = query.get('continue');
    const [version = this.version, from = ''] = token
      ? JSON.parse(Buffer.from(token, 'base64url').toString())
      : [];
    if (token && version < this.oldest) {
      const message = 'The provided continue parameter is too old to display a consistent list result.';
      return [
        410,
        status(410, 'Expired', message, { metadata: { continue: this.token64(this.version, from) } }),
      ];
    }
    const keys = [...this.of(plural).keys()]
      .sort()
      .filter((key) => key > from && key.startsWith(namespace && `${namespace}/`));
    const page = limit > 0 ? keys.slice(0, limit) : keys;
    const left = keys.length - page.length;
    const more =
      left > 0 ? { continue: this.token64(version, page.at(-1) ?? ''), remainingItemCount: left } : {};
    // Items of a list have no kind and apiVersion of their own.
    const items = page.map((key) => {
      const { kind: _, apiVersion: __, ...item } = this.of(plural).get(key);
      return item;
    });
    return [
      200,
      {
        kind: `${KINDS[plural]}List`,
        apiVersion: 'apps/v1',
        metadata: { resourceVersion: String(version), ...more },
        items,
      },
    ];
  }

  private token64(version: number, from: string): string {
    return Buffer.from(JSON.stringify([version, from])).toString('base64url');
  }

  private patch(plural: string, object: Json, seen: Seen): [number, Json] {
    const kind = KINDS[plural] ?? 'Deployment';
    if (seen.contentType !== 'application/json-patch+json')
      return [415, status(415, 'UnsupportedMediaType', 'no JSON patch')];
    let merged: Json;
    try {
      merged = applyJsonPatch(object, seen.text);
    } catch (error) {
      if (!(error instanceof PatchFailed)) throw error;
      const message = 'the server rejected our request due to an error in our request';
      return [422, status(422, 'Invalid', message, { details: {} })];
    }
    // As in a real API server, before admission: what a webhook sets counts as set by the client.
    if (merged.spec.replicas !== object.spec.replicas) {
      merged.metadata.managedFields = [
        ...object.metadata.managedFields,
        {
          manager: seen.query.get('fieldManager') ?? 'unknown',
          operation: 'Update',
          time: '2026-11-20T12:00:00Z',
          fieldsV1: { 'f:spec': { 'f:replicas': {} } },
        },
      ];
    }
    this.onAdmission?.(merged);
    if (seen.query.get('dryRun') === 'All') return [200, merged];
    const stored = this.store(kind, merged, 'MODIFIED');
    this.onPatched?.(kind, stored);
    return [200, stored];
  }

  private watch(
    plural: string,
    namespace: string,
    query: URLSearchParams,
    response: ServerResponse,
  ): [number, Json] {
    const from = Number(query.get('resourceVersion'));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    let isStalled = false;
    const write = (text: string): void => {
      if (isStalled) return;
      const bytes = Buffer.from(text);
      const piece = this.cut ?? bytes.length;
      for (let at = 0; at < bytes.length; at += piece) response.write(bytes.subarray(at, at + piece));
    };
    const listener = (event: Event): void => {
      if (event.plural === plural && event.version > from && (!namespace || event.namespace === namespace))
        write(event.line);
    };
    const error = (code: number, reason: string): void =>
      write(
        `${JSON.stringify({ type: 'ERROR', object: status(code, reason, `too old resource version: ${from} (${this.oldest})`) })}\n`,
      );
    const watch: OpenWatch = {
      plural,
      query,
      write,
      error,
      bookmark: () =>
        write(
          `${JSON.stringify({ type: 'BOOKMARK', object: { kind: KINDS[plural], apiVersion: 'apps/v1', metadata: { resourceVersion: String(this.version), creationTimestamp: null } } })}\n`,
        ),
      end: () => response.end(),
      reset: () => this.raw.get(response.socket?.remotePort ?? 0)?.resetAndDestroy(),
      stall: () => {
        isStalled = true;
      },
    };
    this.watches.push(watch);
    this.listeners.add(listener);
    response.on('close', () => {
      this.listeners.delete(listener);
      this.watches.splice(this.watches.indexOf(watch), 1);
    });
    if (from < this.oldest) {
      error(410, 'Expired');
      response.end();
    } else for (const event of this.watchEvents) listener(event);
    return [0, null];
  }
}

/** Starts a double on a free loopback port; the caller stops it. */
export async function kubeDouble(): Promise<Double> {
  const server = new Server();
  await server.start();
  return server;
}
