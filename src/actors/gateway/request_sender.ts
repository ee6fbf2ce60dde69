// Which pages may call services through the gateway: the third check of docs/reference.md "Gateway".
import { isAllowedExtension } from '../../protocol/extension_origin.ts';

const SENDER_HEADERS = [
  'origin',
  'referer',
  'sec-fetch-site',
  'sec-fetch-mode',
  'sec-fetch-dest',
  'sec-purpose',
] as const;
const KNOWN: ReadonlySet<string> = new Set(SENDER_HEADERS);

type SenderHeader = (typeof SENDER_HEADERS)[number];

/** The headers by which a browser says what made it send a request. */
export type SenderHeaders = { [K in SenderHeader]?: string };

export const isSenderHeader = (lower: string): lower is SenderHeader => KNOWN.has(lower);

/** What the gateway knows of allowed pages. */
export interface AllowedPages {
  agentDomain: string;
  allowedExtensions: readonly string[];
}

/** Loopback names and names below the agent domain with any port, and allowed extensions. */
function isAllowedOrigin(origin: string, { agentDomain, allowedExtensions }: AllowedPages): boolean {
  if (isAllowedExtension(origin, allowedExtensions)) return true;
  const host = /^https?:\/\/(\[::1\]|[A-Za-z0-9-][A-Za-z0-9.-]*)(?::\d{1,5})?$/
    .exec(origin)?.[1]
    ?.toLowerCase();
  if (host === undefined) return false;
  const names = ['localhost', '127.0.0.1', '[::1]'];
  return names.includes(host) || host.endsWith('.localhost') || host.endsWith(`.${agentDomain}`);
}

/** The values of Sec-Fetch-Site for no page, and for pages of the service itself. */
const OWN_SITES: ReadonlySet<string> = new Set(['none', 'same-origin', 'same-site']);

/** Whether someone opens a page by following a link. A prefetch opens none. */
const isVisit = (sender: SenderHeaders): boolean =>
  sender['sec-fetch-mode'] === 'navigate' &&
  sender['sec-fetch-dest'] === 'document' &&
  sender['sec-purpose'] === undefined;

/**
 * Whether a request may pass. Images, scripts and frames of pages send no Origin: to each other, the pages of
 * services are of another site as well, and only the Referer tells them from strangers.
 */
export function isAllowedSender(sender: SenderHeaders, pages: AllowedPages): boolean {
  const { origin, referer = '', 'sec-fetch-site': site } = sender;
  if (origin !== undefined) return isAllowedOrigin(origin, pages);
  // Only browsers send it, and programs that are no pages may do everything.
  if (site === undefined || OWN_SITES.has(site) || isVisit(sender)) return true;
  const [ofReferer = ''] = /^[a-z-]+:\/\/[^/?#]*/.exec(referer) ?? [];
  return isAllowedOrigin(ofReferer, pages);
}
