// The claims of a JWT, unverified: the server that receives it verifies it.

export interface JwtClaims {
  iss?: unknown;
  sub?: unknown;
  aud?: unknown;
  exp?: unknown;
  iat?: unknown;
}

/** The claims of `token`; null if it has none. */
export function claimsOf(token: string): JwtClaims | null {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JwtClaims | null;
  } catch {
    return null;
  }
}
