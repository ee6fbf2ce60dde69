// The proof of the server, and the sessions of the page.
import { z } from '../adapters/zod.ts';

export type ServerProof = z.infer<typeof ServerProof>;
export const ServerProof = z
  .object({
    proof: z.string().nullable().meta({ description: 'HMAC-SHA256 in base64url; null: there is no token' }),
    life: z.string().meta({ description: 'Changes with every start of the daemon; a bearer is made of it' }),
  })
  .meta({ id: 'ServerProof' });

export type LoginSettings = z.infer<typeof LoginSettings>;
export const LoginSettings = z
  .object({
    issuer: z.string().nullable().meta({ description: 'Its URL; null: there is none, only API tokens' }),
    client_id: z.string().nullable().meta({ description: 'The client id with which to request tokens' }),
    audience: z.string().nullable().meta({ description: 'What tokens must be for' }),
    scope: z.string().nullable().meta({ description: 'The scopes to ask for' }),
  })
  .meta({ id: 'LoginSettings' });

export const PageCode = z
  .object({
    code: z
      .string()
      .nullable()
      .meta({ description: 'For the fragment of the dashboard URL; null: there is no token' }),
    file: z.string().nullable().meta({ description: 'The file that redirects a browser there' }),
    expiresInMs: z.int(),
  })
  .meta({ id: 'PageCode' });

export const PageKey = z
  .object({ key: z.string().nullable().meta({ description: 'null: there is no token' }) })
  .meta({ id: 'PageKey' });
