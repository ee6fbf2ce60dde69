// Which Berth `berth k8s` uses, and with which token: docs/reference.md "Login".
import type { AccessKey } from '../protocol/access_key.ts';
import { keyOfToken } from '../protocol/api_token.ts';

/** The login of the command line's user. Programs use the cloud token or an API token instead. */
export interface CloudLogin {
  /** The Berth of the login in a state directory; null: there is none. Throws a SettingsError. */
  url(stateDir: string): string | null;
  /** The token for that Berth. */
  token(stateDir: string, url: string): Promise<string>;
}

export interface CloudAddress {
  /** Where the cloud part is if there is no login. */
  url: () => string;
  /** Its token. */
  token: () => string | null;
  /** Whether the user has named the Berth, so that a login does not decide. */
  isNamed: boolean;
  /** Whether the environment has a token for the named Berth. */
  hasToken: boolean;
  login: CloudLogin | undefined;
  stateDir: string;
}

/** null: it is no URL. */
export const originOf = (url: string): string | null => (URL.canParse(url) ? new URL(url).origin : null);

/** The options of a client. A token is sent only to the Berth it is for. */
export function cloudAccess({ url, token, isNamed, hasToken, login, stateDir }: CloudAddress): {
  cloudUrl: () => string;
  cloudKey: () => Promise<AccessKey | null>;
} {
  const cloudUrl = (): string => (isNamed ? null : login?.url(stateDir)) ?? url();
  return {
    cloudUrl,
    cloudKey: async () => {
      const at = originOf(cloudUrl());
      const isOfLogin = at !== null && login?.url(stateDir) === at && !(isNamed && hasToken);
      const secret = isOfLogin ? await login?.token(stateDir, at) : token();
      return secret ? keyOfToken(secret) : null;
    },
  };
}
