// docs/reference.md "Clusters on the command line": which files are read, and how they are merged. Where there
// is a kubectl, it is asked the same.
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readKubeContext } from '../../../src/adapters/kubeconfig/kubeconfig_files.ts';
import { tempDir } from '../../kit/actors.ts';
import { clusterFile, describeReal } from '../../kit/kube_real.ts';
import { file, kubeconfig } from './kubeconfigs.ts';

const none = { file: undefined, context: undefined };

/** Two files that disagree: the second has the same names, and one more context. */
function twoFiles(): [string, string] {
  const first = kubeconfig({ root: { 'current-context': '' } });
  const second = kubeconfig({
    cluster: { server: 'https://10.9.9.9', 'tls-server-name': 'second' },
    user: { token: 'second' },
    root: {
      'current-context': 'more',
      contexts: [
        { name: 'ctx', context: { cluster: 'other', user: 'u' } },
        { name: 'more', context: { cluster: 'c', user: 'u', namespace: 'web' } },
      ],
    },
  });
  return [file(first, 'first'), file(second, 'second')];
}

describe('a kubeconfig of several files', () => {
  it('takes each entry and the current context from the first file that has it', () => {
    const [first, second] = twoFiles();
    const env = { KUBECONFIG: `${first}:/nowhere::${second}` };
    expect(readKubeContext(none, env)).toMatchObject({
      name: 'more',
      namespace: 'web',
      cluster: { fields: { server: 'https://10.0.0.1:6443' } },
      user: { fields: { token: 'static-token' } },
    });
    expect(readKubeContext(none, env).cluster.fields).not.toHaveProperty('tls-server-name');
    expect(readKubeContext({ ...none, context: 'ctx' }, env).cluster.name).toBe('c');
    expect(readKubeContext({ ...none, file: second }, env).cluster.fields['server']).toBe('https://10.9.9.9');
  });

  it('ignores a missing file, and refuses an invalid one', () => {
    const [first] = twoFiles();
    const broken = file('{', 'broken');
    const read = (KUBECONFIG: string) => readKubeContext({ ...none, context: 'ctx' }, { KUBECONFIG });
    expect(read(`/nowhere:${first}`).name).toBe('ctx');
    expect(() => read(`${first}:${broken}`)).toThrow(`${broken}:1: `);
    expect(() => read('/nowhere')).toThrow('there is no context in /nowhere');
  });
});

it('without $KUBECONFIG, ~/.kube/config is read', () => {
  const home = tempDir();
  expect(() => readKubeContext(none, { HOME: home })).toThrow(`there is no context in ${home}/.kube/config`);
  expect(() => readKubeContext(none, {})).toThrow('there is no context in ~/.kube/config');
  mkdirSync(join(home, '.kube'));
  writeFileSync(join(home, '.kube/config'), kubeconfig());
  expect(readKubeContext(none, { HOME: home, KUBECONFIG: '' }).name).toBe('ctx');
});

it('contexts are listed if none is chosen, or one that does not exist', () => {
  const path = file(kubeconfig({ root: { 'current-context': '' } }));
  expect(() => readKubeContext({ ...none, file: path }, {})).toThrow('has no current context');
  try {
    readKubeContext({ file: path, context: 'prod' }, {});
  } catch (error) {
    expect(error).toMatchObject({ message: `${path} has no context prod`, hint: 'Contexts: ctx.' });
  }
});

it('a context that leads to a given server is preferred to the current one, if it is the only one', () => {
  const servers = {
    home: 'https://HOME.example:443/',
    one: 'https://one.example',
    two: 'https://two.example',
  };
  const contexts = ['home', 'one', 'two', 'two-admin'];
  const root = {
    'current-context': 'home',
    contexts: contexts.map((name) => ({ name, context: { cluster: name.split('-')[0], user: 'u' } })),
    clusters: Object.entries(servers).map(([name, server]) => ({ name, cluster: { server } })),
  };
  const path = file(kubeconfig({ root }));
  const nameFor = (server: string, context?: string): string =>
    readKubeContext({ file: path, context, server }, {}).name;
  expect(
    ['https://home.example', 'https://one.example', 'https://two.example'].map((one) => nameFor(one)),
  ).toEqual(['home', 'one', 'home']);
  expect([nameFor('https://nowhere.example'), nameFor('https://one.example', 'two')]).toEqual([
    'home',
    'two',
  ]);
});

it('common YAML is read: anchors, comments, thousands of contexts', () => {
  const text = `# mine
current-context: b
x: &server {server: "https://10.0.0.1"}
contexts:
- {name: a, context: {cluster: c, user: u}}
- {name: b, context: {cluster: c, user: u}}
clusters: [{name: c, cluster: *server}]
users: [{name: u, user: {token: t}}]
`;
  expect(readKubeContext({ ...none, file: file(text) }, {}).name).toBe('b');
  const many = Array.from({ length: 500 }, (_, at) => ({
    name: `c${at}`,
    context: { cluster: 'c', user: 'u' },
  }));
  const path = file(kubeconfig({ root: { contexts: many, 'current-context': 'c499' } }));
  expect(readKubeContext({ ...none, file: path }, {}).name).toBe('c499');
});

describe('invalid input is refused at once, and named:', () => {
  const read = (path: string) => readKubeContext({ ...none, file: path }, {});
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
    .split('')
    .map((key, at) => `${key}: &${key} [${Array(10).fill(`*${'abcdefghi'[at]}`)}]`)
    .join('\n')}\n`;
  const rows: readonly [what: string, path: () => string, message: string][] = [
    ['a device', () => '/dev/zero', '/dev/zero cannot be read: is a device'],
    ['a folder', () => tempDir(), 'is a folder'],
    [
      'a link that leads nowhere',
      () => {
        const path = join(tempDir(), 'link');
        symlinkSync('/nowhere', path);
        return path;
      },
      'ENOENT',
    ],
    [
      'a FIFO',
      () => {
        const path = join(tempDir(), 'fifo');
        execFileSync('mkfifo', [path]);
        return path;
      },
      'is a FIFO',
    ],
    [
      'a file of 100 MB',
      () => {
        const path = file('');
        truncateSync(path, 100_000_000);
        return path;
      },
      'is larger than',
    ],
    ['nothing', () => file(''), 'there is no context'],
    ['a list', () => file('[1]'), 'must be a YAML mapping'],
    ['binary', () => file('\u0000\u0001: x'), 'there is no context'],
    ['deep nesting', () => file(`a: ${'['.repeat(50_000)}`), 'nested too deeply'],
    ['aliases of aliases', () => file(bomb), 'too large once its aliases are followed'],
    ['two documents', () => file('a: 1\n---\nb: 2\n'), 'one document'],
    ['__proto__', () => file('__proto__: {contexts: []}'), '__proto__'],
    [
      'a name that is there twice',
      () => {
        const cluster = { name: 'c', cluster: { server: 'https://10.0.0.1' } };
        return file(kubeconfig({ root: { clusters: [cluster, cluster] } }));
      },
      'clusters has "c" twice',
    ],
    ['a name that is no text', () => file('users: [{name: 1}]'), 'users[0] must have a name'],
    ['lists that are none', () => file('contexts: 3'), 'contexts must be a list'],
    [
      'a current context that is no text',
      () => file('current-context: [a]'),
      'current-context must be a text',
    ],
  ];
  it.each(rows)('%s', (_, path, message) => {
    expect(() => read(path())).toThrow(message);
  });
});

describeReal('what kubectl reads', () => {
  it('is the same as what Berth reads', () => {
    const [first, second] = twoFiles();
    const kubectl = clusterFile('bin/kubectl') ?? 'kubectl';
    for (const [paths, args] of [
      [`${first}:${second}`, []],
      [`${second}:${first}`, []],
      [`/nowhere:${first}`, ['--context', 'ctx']],
    ] as const) {
      const env = { ...process.env, KUBECONFIG: paths };
      const said = execFileSync(kubectl, ['config', 'view', '--raw', '--minify', '-o', 'json', ...args], {
        env,
      });
      const config = JSON.parse(said.toString());
      const { name, namespace, cluster, user } = readKubeContext({ ...none, context: args[1] }, env);
      expect({ name, namespace, cluster: cluster.fields, user: user.fields }).toEqual({
        name: config['current-context'],
        namespace: config.contexts[0].context.namespace ?? null,
        cluster: config.clusters[0].cluster,
        user: config.users[0].user,
      });
    }
  });
});
