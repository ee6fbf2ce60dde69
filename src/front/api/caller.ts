// The caller of a request, identified by its token:
// docs/reference.md "Tokens", "Agent tokens", "Shared terminals".
import type { AgentLife } from '../../protocol/access_key.ts';
import type { Principal } from '../../protocol/grants.ts';
import type { Share } from './share_tokens.ts';

/**
 * `user`: may do everything this half of the API offers. `agent`: may work within its stack. `share`: may
 * watch one agent. `principal`: may do in the cloud part what its grants allow.
 */
export type Caller =
  | { readonly kind: 'user' }
  | { readonly kind: 'agent'; readonly life: AgentLife }
  | { readonly kind: 'share'; readonly share: Share }
  | { readonly kind: 'principal'; readonly principal: Principal };

/** Shared by all requests of users. */
export const USER: Caller = { kind: 'user' };
