// Keys that the daemon and a client share, and the texts of which both make HMACs with them:
// docs/reference.md "Proof of the server".

/** A secret, and the public id by which the other side finds it. */
export interface AccessKey {
  id: string;
  secret: string;
}

/** The id of the key whose secret is the token of the API that is asked. */
export const TOKEN_KEY_ID = 'token';

/** At least 128 bits, and few enough characters for a URL. */
export const NONCE_PATTERN = /^[A-Za-z0-9_-]{22,86}$/;

const KEY = /^((?:code|page|live|share|agent)-[A-Za-z0-9_-]{1,80})\.([A-Za-z0-9_-]{43})$/;
const BEARER = /^berth\.([A-Za-z0-9_-]{1,90})\.([A-Za-z0-9_-]{43})$/;

/** A key as one text, for a fragment or the storage of a tab. */
export const formatKey = ({ id, secret }: AccessKey): string => `${id}.${secret}`;

/** The key in `text`; null for any other text. */
export function parseKey(text: string): AccessKey | null {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** What a client sends in place of the secret of the key `id`: `mac` is the HMAC of `bearerText`. */
export const formatBearer = (id: string, mac: string): string => `berth.${id}.${mac}`;

/** The id and the HMAC of a bearer; null for any other text, such as a token. */
export function parseBearer(text: string): { id: string; mac: string } | null {
  const [, id, mac] = BEARER.exec(text) ?? [];
  return id === undefined || mac === undefined ? null : { id, mac };
}

/**
 * The key that a tab stores. Its secret is what the tab sends anyway, and is worth nothing once the daemon
 * that `bearer` was made for has ended. null: `bearer` is not of a page's key.
 */
export function storableKey(bearer: string): AccessKey | null {
  const { id = '', mac = '' } = parseBearer(bearer) ?? {};
  return id.startsWith('page-') ? { id: `live-${id}`, secret: mac } : null;
}

/** One life of an agent, as the id of its key says it. */
export interface AgentLife {
  name: string;
  /** The run of its process. */
  run: string;
}

const AGENT_KEY_ID = /^agent-([0-9a-f]{16})-([a-z0-9_][a-z0-9_-]{0,62})$/;

/** The id of the key of an agent's process: docs/reference.md "Token of an agent". */
export const agentKeyId = ({ name, run }: AgentLife): string => `agent-${run}-${name}`;

/** The agent whose key has this id; null: it is the id of another key. */
export function parseAgentKeyId(id: string): AgentLife | null {
  const [, run, name] = AGENT_KEY_ID.exec(id) ?? [];
  return run === undefined || name === undefined ? null : { name, run };
}

/** Whether `given` has the form of an agent's token, or of a bearer that is made of one. */
export const isAgentForm = (given: string): boolean =>
  given.startsWith('agent-') || given.startsWith('berth.agent-');

/** What the daemon makes the secret of an agent's key of. */
export const agentSecretText = (id: string): string => `berth agent\n${id}`;

/** What the server makes its proof of. `host`: the Host of the request; `life`: of this daemon's life. */
export const proofText = (nonce: string, host: string, life: string): string =>
  `berth proof\n${nonce}\n${host.toLowerCase()}\n${life}`;

/** What a client makes its bearer of, which is good for one life of the daemon. */
export const bearerText = (life: string): string => `berth bearer\n${life}`;
