// docs/reference.md "Clusters on the command line": the kubeconfigs that vendors write, each stored, logged in
// with a command, or refused with the way out.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { certificate } from '../../kit/certificates.ts';
import { file, kubeconfig, type Parts, resolveFile } from './kubeconfigs.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const ca = certificate({ commonName: 'vendor ca' });
const client = certificate({ commonName: 'kubernetes-admin', issuer: ca });
const caData = { 'certificate-authority-data': base64(ca.cert) };
const clientData = {
  'client-certificate-data': base64(client.cert),
  'client-key-data': base64(client.key),
};
const jwt = (claims: object): string => `e30.${base64(JSON.stringify(claims))}.sig`;
const LATER = Math.floor(Date.now() / 1_000) + 3_600;
const V1 = 'client.authentication.k8s.io/v1';
const V1_BETA = 'client.authentication.k8s.io/v1beta1';

/** [who writes it, the file, the kind of credential that is stored or `exec` or `provider`]. */
const ACCEPTED: readonly [vendor: string, parts: Parts, kind: string][] = [
  ['kind', { cluster: { server: 'https://127.0.0.1:40001', ...caData }, user: clientData }, 'certificate'],
  ['k3s', { cluster: { server: 'https://127.0.0.1:6443', ...caData }, user: clientData }, 'certificate'],
  [
    'Rancher, with a path in the address',
    {
      cluster: { server: 'https://rancher.example/k8s/clusters/c-m-1' },
      user: { token: 'kubeconfig-u:abc' },
    },
    'token',
  ],
  [
    'AKS local account, with both',
    { cluster: caData, user: { ...clientData, token: 't'.repeat(64) } },
    'certificate',
  ],
  [
    'OpenShift, oc login',
    { cluster: caData, user: { token: `sha256~${'a'.repeat(43)}` }, context: { namespace: 'shop' } },
    'token',
  ],
  [
    'tls-server-name, behind a tunnel',
    { cluster: { ...caData, 'tls-server-name': 'api.internal' } },
    'token',
  ],
  [
    'fields that are not known, or harmless',
    {
      cluster: { ...caData, 'disable-compression': true, extensions: [{ name: 'x' }], future: 1 },
      context: { extensions: [] },
      root: { preferences: { colors: true }, extensions: null },
    },
    'token',
  ],
  [
    'EKS, aws eks update-kubeconfig',
    {
      user: {
        exec: {
          apiVersion: V1_BETA,
          command: 'aws',
          args: ['eks', 'get-token'],
          env: null,
          interactiveMode: 'IfAvailable',
        },
      },
    },
    'exec',
  ],
  [
    'GKE, gke-gcloud-auth-plugin',
    {
      user: {
        exec: {
          apiVersion: V1_BETA,
          command: 'gke-gcloud-auth-plugin',
          installHint: 'Install it',
          provideClusterInfo: true,
        },
      },
    },
    'exec',
  ],
  [
    'AKS with Entra, kubelogin',
    { user: { exec: { apiVersion: V1_BETA, command: 'kubelogin', args: ['get-token'] } } },
    'exec',
  ],
  [
    'OIDC, kubectl oidc-login',
    { user: { exec: { apiVersion: V1, command: 'kubectl', args: ['oidc-login'] } } },
    'exec',
  ],
  ['DigitalOcean', { user: { exec: { apiVersion: V1_BETA, command: 'doctl' } } }, 'exec'],
  [
    'OIDC auth-provider, with a token that is valid',
    { user: { 'auth-provider': { name: 'oidc', config: { 'id-token': jwt({ exp: LATER }) } } } },
    'provider',
  ],
  [
    'older GKE, with a token that is valid',
    {
      user: {
        'auth-provider': { name: 'gcp', config: { 'access-token': 'ya29', expiry: '2999-01-01T00:00:00Z' } },
      },
    },
    'provider',
  ],
  [
    'older AKS, with a token that is valid',
    {
      user: {
        'auth-provider': { name: 'azure', config: { 'access-token': 'a', 'expires-on': String(LATER) } },
      },
    },
    'provider',
  ],
  [
    'a token beside exec, as kubectl',
    { user: { token: 't', exec: { apiVersion: V1, command: 'no' } } },
    'token',
  ],
];

it.each(ACCEPTED)('%s', (_, parts, kind) => {
  const { login, standalone } = resolveFile(file(kubeconfig(parts)));
  if (standalone === null) expect(login.kind).toBe(kind);
  // The daemon's closed record takes it as it is.
  else expect(parseKubeconfig(standalone, Date.now()).credential.kind).toBe(kind);
});

const REFUSED: readonly [what: string, parts: Parts, message: string, hint: string][] = [
  ['a proxy', { cluster: { 'proxy-url': 'socks5://127.0.0.1:1080' } }, 'proxy', 'VPN'],
  [
    'no verification',
    { cluster: { 'insecure-skip-tls-verify': true } },
    'not verified',
    '--certificate-authority',
  ],
  ['no TLS', { cluster: { server: 'http://10.0.0.1:8080' } }, 'no https:// address', 'without TLS'],
  ['no server', { cluster: { server: '' } }, 'has no server', ''],
  ['impersonation', { user: { token: 't', as: 'root' } }, 'acts as another user', 'the account itself'],
  [
    'impersonation of groups alone',
    { user: { token: 't', 'as-groups': ['system:masters'] } },
    'impersonation',
    '',
  ],
  ['a password', { user: { username: 'admin', password: 'x' } }, 'user name and password', 'token'],
  ['no login', { user: {} }, 'has no login', 'token'],
  ['a number as token', { user: { token: 12_345 } }, 'must be a text', 'quotes'],
  [
    'an expired id-token',
    { user: { 'auth-provider': { name: 'oidc', config: { 'id-token': jwt({ exp: 1 }) } } } },
    'still valid',
    'kubectl',
  ],
  ['no id-token', { user: { 'auth-provider': { name: 'oidc', config: null } } }, 'still valid', 'kubectl'],
  [
    'an expired GKE login',
    { user: { 'auth-provider': { name: 'gcp', config: { 'access-token': 'y', expiry: '2020-01-01' } } } },
    'still valid',
    'gcloud',
  ],
  [
    'an expired AKS login',
    { user: { 'auth-provider': { name: 'azure', config: { 'access-token': 'y', 'expires-on': '1' } } } },
    'still valid',
    'kubelogin',
  ],
  ['a provider that nobody knows', { user: { 'auth-provider': { name: 'constructor' } } }, 'not known', ''],
  ['exec without a command', { user: { exec: { apiVersion: V1 } } }, 'no command', ''],
  [
    'exec of another version',
    { user: { exec: { apiVersion: 'v2', command: 'x' } } },
    'apiVersion',
    'v1beta1',
  ],
  [
    'exec of another mode',
    { user: { exec: { apiVersion: V1, command: 'x', interactiveMode: 'Maybe' } } },
    'interactiveMode',
    '',
  ],
  ['a user that is not there', { context: { user: 'gone' } }, 'the user gone, which there is not', ''],
  [
    'a cluster that is not there',
    { context: { cluster: 'gone' } },
    'the cluster gone, which there is not',
    '',
  ],
  ['no user', { context: { user: '' } }, 'names no user', ''],
  ['an entry that is no mapping', { root: { users: [{ name: 'u', user: 'x' }] } }, 'must be a mapping', ''],
];

it.each(REFUSED)('is refused with a remedy: %s', (_, parts, message, hint) => {
  const path = file(kubeconfig(parts));
  expect(() => resolveFile(path)).toThrow(message);
  try {
    resolveFile(path);
  } catch (error) {
    expect(error).toMatchObject({ name: 'KubeconfigError', hint: expect.stringContaining(hint) });
  }
});

it('the files of a minikube kubeconfig are read relative to the kubeconfig', () => {
  const path = file('');
  const folder = dirname(path);
  for (const [name, text] of Object.entries({
    'ca.crt': ca.cert,
    'client.crt': client.cert,
    'client.key': client.key,
  }))
    writeFileSync(join(folder, name), text);
  const user = { 'client-certificate': join(folder, 'client.crt'), 'client-key': 'client.key' };
  writeFileSync(path, kubeconfig({ cluster: { 'certificate-authority': './ca.crt' }, user }));
  const { standalone } = resolveFile(path);
  expect(parseKubeconfig(standalone ?? '', Date.now())).toMatchObject({
    ca: ca.cert,
    credential: { kind: 'certificate', certificate: client.cert },
  });
});

it('data takes precedence over its file, and a token file over the token', () => {
  const path = file('');
  writeFileSync(join(dirname(path), 'token'), 'from-the-file\n');
  const user = { token: 'old', tokenFile: 'token' };
  writeFileSync(path, kubeconfig({ cluster: { ...caData, 'certificate-authority': '/nowhere' }, user }));
  const { login, standalone } = resolveFile(path);
  expect(login).toMatchObject({ file: join(dirname(path), 'token') });
  expect(parseKubeconfig(standalone ?? '', Date.now())).toMatchObject({
    ca: ca.cert,
    credential: { kind: 'token', token: 'from-the-file' },
  });
});

it('a given certificate authority replaces insecure-skip-tls-verify', () => {
  const path = file(kubeconfig({ cluster: { 'insecure-skip-tls-verify': true } }));
  const { standalone } = resolveFile(path, { authority: file(ca.cert, 'ca.crt') });
  expect(parseKubeconfig(standalone ?? '', Date.now()).ca).toBe(ca.cert);
  const noPem = resolveFile(path, { authority: file('not PEM', 'ca.crt') }).standalone ?? '';
  expect(() => parseKubeconfig(noPem, Date.now())).toThrow(/must contain PEM certificates/);
});
