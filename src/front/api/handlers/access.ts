// The handlers of proofs and of the page's sessions.
import type { access } from '../../../api/access.ts';
import { formatKey } from '../../../protocol/access_key.ts';
import { fail } from '../../../protocol/errors.ts';
import { PAGE } from '../../../settings/limits.ts';
import { USER } from '../caller.ts';
import type { HandlersOf } from '../handler.ts';

export const accessHandlers: HandlersOf<typeof access> = {
  prove: ({ app, host, query }) => app.keys.prove(host, query),

  proveCloud: ({ app, host, query }) => {
    if (!app.cloudKeys) throw fail('not_found', 'there is no cloud part');
    return app.cloudKeys.prove(host, query);
  },

  readLogin: ({ app }) => {
    const { login } = app.cloud;
    if (!app.cloudKeys) throw fail('not_found', 'there is no cloud part');
    return login ?? { issuer: null, client_id: null, audience: null, scope: null };
  },

  createPageCode: ({ app, host, query }) => {
    const { keys, redirectPages } = app;
    const expiresInMs = PAGE.codeMs;
    if (!keys.isRequired) return { code: null, file: null, expiresInMs };
    const code = keys.createCode((id) => redirectPages.remove(id));
    const text = formatKey(code);
    const file = query.file ? redirectPages.write(code.id, `http://${host}/#code=${text}`) : null;
    return { code: text, file, expiresInMs };
  },

  openPageSession: ({ app, bearer }) => {
    // Without a token, everybody is the user, except who presents the token of an agent or a share.
    if (!app.keys.isRequired && app.keys.callerOf(bearer) === USER) return { key: null };
    return { key: formatKey(app.keys.openSession(bearer)) };
  },
};
