// Kubeconfigs in real files, as users have them.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readKubeContext } from '../../../src/adapters/kubeconfig/kubeconfig_files.ts';
import {
  clusterFields,
  loginOf,
  standaloneKubeconfig,
  type UserLogin,
} from '../../../src/adapters/kubeconfig/user_login.ts';
import { tempDir } from '../../kit/actors.ts';

/** A file in a folder of its own; returns its path. */
export function file(text: string, name = 'config', mode = 0o600): string {
  const path = join(tempDir(), name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

/** A script that can be run; returns its path. */
export const script = (text: string, name = 'login'): string => file(`#!/bin/sh\n${text}\n`, name, 0o700);

export interface Parts {
  cluster?: object;
  user?: object;
  context?: object;
  root?: object;
}

/** The text of a kubeconfig with one context, with parts replaced. */
export const kubeconfig = ({ cluster, user, context, root }: Parts = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'ctx',
    contexts: [{ name: 'ctx', context: { cluster: 'c', user: 'u', ...context } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user: user ?? { token: 'static-token' } }],
    ...root,
  });

export interface Resolved {
  login: UserLogin;
  /** Of a login that can be stored. */
  standalone: string | null;
}

/** What `berth k8s add` makes of a file without calling anything. */
export function resolveFile(path: string, more: { context?: string; authority?: string } = {}): Resolved {
  const context = readKubeContext({ file: path, context: more.context }, {});
  const cluster = clusterFields(context, more.authority);
  const login = loginOf(context, Date.now());
  return {
    login,
    standalone: login.kind === 'stored' ? standaloneKubeconfig(context, cluster, login.user) : null,
  };
}
