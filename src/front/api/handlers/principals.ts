// The handlers of API tokens and grants. Lists are answered from the views; changes go to the owner.
import type { principals } from '../../../api/principals.ts';
import type { ApiToken, Grant } from '../../../api/principals_shapes.ts';
import type { StoredGrant } from '../../../protocol/grants.ts';
import type { Asker, StoredToken } from '../../../protocol/principals.ts';
import { utcTime } from '../../../protocol/timestamps.ts';
import type { AppContext } from '../app_context.ts';
import { assertCluster } from '../cloud_rights.ts';
import type { HandlersOf, RequestContext } from '../handler.ts';

const time = (ms: number): string => new Date(ms).toISOString();

const tokenItem = ({ id, name, createdAt, createdBy, expiresAt, lastUsedAt }: StoredToken): ApiToken => ({
  ...{ id, name, created_at: time(createdAt), created_by: createdBy },
  ...{ expires_at: utcTime(expiresAt), last_used_at: utcTime(lastUsedAt) },
});

const nameIn = (subject: string, kind: string): string | null =>
  subject.startsWith(kind) ? subject.slice(kind.length) : null;

function grantItem({ cloud: { views } }: AppContext, grant: StoredGrant): Grant {
  const { id, subject, role, clusterId, namespace, labels, createdAt, createdBy } = grant;
  return {
    id,
    token: views.principals.tokenNameOf(subject),
    user: nameIn(subject, 'user:'),
    group: nameIn(subject, 'group:'),
    role,
    cluster_id: clusterId,
    cluster: clusterId === null ? null : views.subject({ clusterId }).cluster,
    namespace,
    selector: labels,
    created_at: time(createdAt),
    created_by: createdBy,
  };
}

const askerOf = ({ who, from, operationId }: RequestContext): Asker => ({
  ...{ who, from, operationId: operationId ?? null },
});

export const principalHandlers: HandlersOf<typeof principals> = {
  listTokens: ({ app }) => app.cloud.views.principals.tokens().map(tokenItem),

  createToken: async (request) => {
    const { app, body } = request;
    const { token, secret } = await app.cloud.pass(() =>
      app.ref('principals').ask('createToken', { ...body, by: askerOf(request) }),
    );
    return { ...tokenItem(token), token: secret };
  },

  revokeToken: (request) =>
    request.app.ref('principals').ask('revokeToken', { name: request.key, by: askerOf(request) }),

  listGrants: ({ app }) => app.cloud.views.principals.grants().map((grant) => grantItem(app, grant)),

  createGrant: async (request) => {
    const { app, body: input } = request;
    assertCluster(app.cloud.views, input.clusterId, null);
    return grantItem(app, await app.ref('principals').ask('createGrant', { input, by: askerOf(request) }));
  },

  removeGrant: (request) =>
    request.app.ref('principals').ask('removeGrant', { id: request.key, by: askerOf(request) }),
};
