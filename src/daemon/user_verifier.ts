// The issuer of `cloud.oidc_issuer`, as the front uses it: docs/reference.md "OpenID Connect".
import type { UserVerifier } from '../front/views/principals.ts';
import { fail } from '../protocol/errors.ts';
import type { Settings } from '../settings/config.ts';

/** null if there is none. */
export async function userVerifier({ cloud }: Settings): Promise<UserVerifier | null> {
  if (cloud.oidc_issuer === '') return null;
  const { IssuerError, OidcIssuer } = await import('../adapters/oidc.ts');
  const issuer = new OidcIssuer({
    issuer: cloud.oidc_issuer,
    audience: cloud.oidc_audience,
    subjectClaim: cloud.oidc_subject_claim,
    groupsClaim: cloud.oidc_groups_claim,
  });
  return {
    verify: async (token) => {
      try {
        return await issuer.verify(token);
      } catch (error) {
        if (error instanceof IssuerError) throw fail('daemon_busy', error.message);
        throw error;
      }
    },
  };
}
