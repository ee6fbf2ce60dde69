// Who sends a request, by the token that it shows: docs/reference.md "Tokens", "Shared terminals".
import type { Share } from './share_tokens.ts';

/** `user`: may do everything that the half of the API offers. `share`: may watch one agent. */
export type Caller = { readonly kind: 'user' } | { readonly kind: 'share'; readonly share: Share };

/** One for all requests of users. */
export const USER: Caller = { kind: 'user' };
