// A team's server with an issuer, and a user who logs in there with the built program.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { berth, cleanEnv, folder, type Ran } from '../cli/berth_process.ts';
import { certificate } from '../kit/certificates.ts';
import { startDaemon } from '../kit/daemon.ts';
import { type LoginIssuer, startLoginIssuer } from '../kit/login_issuer.ts';

const identity = certificate({ commonName: 'localhost', names: ['localhost', '127.0.0.1'] });

/** Files with the certificate of a server, which its users trust. */
function certificateFiles(): { cert: string; key: string } {
  const [cert, key] = [join(folder(), 'cert.pem'), join(folder(), 'key.pem')];
  writeFileSync(cert, identity.cert);
  writeFileSync(key, identity.key, { mode: 0o600 });
  return { cert, key };
}

export interface Team {
  url: string;
  issuer: LoginIssuer;
  state: string;
  loginFile: string;
  env: Record<string, string>;
  run(...args: string[]): Promise<Ran>;
  /** The same with the cloud token. */
  admin(...args: string[]): Promise<Ran>;
}

/** A server with an issuer, and a user in whose name commands run. */
export async function team({ hasIssuer = true, relayPort = -1 } = {}): Promise<Team> {
  const issuer = await startLoginIssuer();
  const { cert, key } = certificateFiles();
  const oidc = hasIssuer ? `oidc_issuer = "${issuer.url}"\noidc_audience = "berth"\n` : '';
  const server = await startDaemon({
    command: ['cloud', 'serve'],
    config: `[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = ${relayPort}\ntls_cert = "${cert}"\ntls_key = "${key}"\n${oidc}`,
  });
  const url = `https://localhost:${server.port}`;
  const home = folder();
  const state = join(home, 'state');
  const env = cleanEnv(home, { NODE_EXTRA_CA_CERTS: cert, BERTH_STATE_DIR: state });
  const admin = { ...env, BERTH_CLOUD_URL: url, BERTH_CLOUD_TOKEN: 'cloud' };
  return {
    ...{ url, issuer, state, env, loginFile: join(state, 'login.json') },
    run: (...args) => berth(args, { env }),
    admin: (...args) => berth(args, { env: admin }),
  };
}

/** Somebody who has logged in and may see everything. */
export async function loggedIn(): Promise<Team> {
  const made = await team();
  expect(await made.admin('k8s', 'grants', 'add', 'user:anna', 'viewer')).toMatchObject({ code: 0 });
  const { code, stderr } = await made.run('login', made.url);
  expect([code, stderr]).toEqual([0, expect.stringContaining('WDJB-MJHT')]);
  return made;
}

export const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'));

/** Has the token of a login be due for renewal, or expired. */
export function makeDue({ loginFile }: Team, expiresAt = Date.now() + 60_000): void {
  const login = readJson(loginFile);
  Object.assign(login.source, { refresh_at: 0, expires_at: expiresAt });
  writeFileSync(loginFile, JSON.stringify(login));
}
