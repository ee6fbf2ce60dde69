// Keys shared by the daemon and a client, and the texts that both sign with them (HMAC):
// docs/reference.md "Server authentication".

/** A secret, and the public id by which the other side looks it up. */
export interface AccessKey {
  id: string;
  secret: string;
}

/** The id of the key whose secret is the API's own token. */
export const TOKEN_KEY_ID = 'token';

/** At least 128 bits, and few enough characters for a URL. */
export const NONCE_PATTERN = /^[A-Za-z0-9_-]{22,86}$/;

const KEY = /^((?:code|page|live|share|agent)-[A-Za-z0-9_-]{1,80})\.([A-Za-z0-9_-]{43})$/;
const BEARER = /^berth\.([A-Za-z0-9_-]{1,90})\.([A-Za-z0-9_-]{43})$/;

/** The token or bearer of a header `Authorization`; null if it has another scheme. */
export function headerToken(header: string): string | null {
  if (header.startsWith('Bearer ')) return header.slice(7).trim();
  return /^bearer[ \t]+(.*)$/i.exec(header)?.[1]?.trim() ?? null;
}

/** Before a token or bearer, in base64url, among the protocols of a WebSocket: docs/reference.md "Attach". */
export const TOKEN_PROTOCOL = 'base64url.bearer.authorization.berth.';

/** Formats a key as one text, for a URL fragment or a tab's storage. */
export const formatKey = ({ id, secret }: AccessKey): string => `${id}.${secret}`;

/** Parses the text of `formatKey`; null if it is not one. */
export function parseKey(text: string): AccessKey | null {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** What a client sends instead of the secret of key `id`. `mac` is the HMAC of `bearerText`. */
export const formatBearer = (id: string, mac: string): string => `berth.${id}.${mac}`;

/** Parses a bearer; null for any other text, such as a token. */
export function parseBearer(text: string): { id: string; mac: string } | null {
  const [, id, mac] = BEARER.exec(text) ?? [];
  return id === undefined || mac === undefined ? null : { id, mac };
}

/**
 * The key that a tab may store. Its secret is a bearer's HMAC, which the tab sends anyway and which is
 * worthless once the daemon it was made for has ended. null: `bearer` was not made from a page's key.
 */
export function storableKey(bearer: string): AccessKey | null {
  const { id = '', mac = '' } = parseBearer(bearer) ?? {};
  return id.startsWith('page-') ? { id: `live-${id}`, secret: mac } : null;
}

/** One run of an agent, as encoded in the id of its key. */
export interface AgentLife {
  name: string;
  run: string;
}

const AGENT_KEY_ID = /^agent-([0-9a-f]{16})-([a-z0-9_][a-z0-9_-]{0,62})$/;

/** The id of the key given to an agent's process: docs/reference.md "Agent tokens". */
export const agentKeyId = ({ name, run }: AgentLife): string => `agent-${run}-${name}`;

/** The agent whose key has this id; null if the id belongs to another kind of key. */
export function parseAgentKeyId(id: string): AgentLife | null {
  const [, run, name] = AGENT_KEY_ID.exec(id) ?? [];
  return run === undefined || name === undefined ? null : { name, run };
}

/** Whether `given` looks like an agent's token, or a bearer made from one. */
export const isAgentForm = (given: string): boolean =>
  given.startsWith('agent-') || given.startsWith('berth.agent-');

/** The text whose HMAC is the secret of an agent's key. */
export const agentSecretText = (id: string): string => `berth agent\n${id}`;

/**
 * The text the server signs to prove itself. `host`: the request's Host header; `life`: identifies this
 * daemon process.
 */
export const proofText = (nonce: string, host: string, life: string): string =>
  `berth proof\n${nonce}\n${host.toLowerCase()}\n${life}`;

/** What a standby signs that forwards a request for a proof: a client has asked for it at `host`. */
export const hostSignatureText = (nonce: string, host: string): string =>
  `berth host\n${nonce}\n${host.toLowerCase()}`;

/** What a standby signs that forwards a request: its client has this address. */
export const clientSignatureText = (address: string): string => `berth client\n${address}`;

/** The text a client signs to get its bearer, which is valid for one daemon process. */
export const bearerText = (life: string): string => `berth bearer\n${life}`;
