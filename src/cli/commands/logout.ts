// berth logout
import { NoTokensError } from '../../adapters/issuer_client.ts';
import { changeLogin, readLogin, removeLogin, type StoredLogin } from '../../client/login_file.ts';
import { openIssuer } from '../../client/login_renewal.ts';
import { defineCommand } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';

/** Makes the issuer revoke the login. If that fails, the command logs the user out anyway. */
async function revoke({ out }: CommandContext, { source }: StoredLogin): Promise<boolean> {
  const token = source?.refresh_token ?? null;
  if (!source || token === null) return false;
  try {
    return await (await openIssuer(source)).revoke(token);
  } catch (error) {
    if (!(error instanceof NoTokensError)) throw error;
    out.warn(`the login was not revoked: ${error.message}`);
    return false;
  }
}

export const logoutCommand = defineCommand({
  about:
    'Has the issuer revoke the login, where it offers that, and removes it from the state directory. An API ' +
    'token goes on: `berth k8s tokens revoke` ends it.',
  run: async (context) => {
    const { out } = context;
    const { stateDir } = await context.local();
    const url = await changeLogin(stateDir, async () => {
      const login = readLogin(stateDir);
      if (!login) return null;
      const is_revoked = await revoke(context, login);
      removeLogin(stateDir);
      return { url: login.url, is_revoked };
    });
    out.record(url ?? { url: null, is_revoked: false }, () =>
      url ? `logged out of ${url.url}` : 'nobody is logged in',
    );
  },
});
