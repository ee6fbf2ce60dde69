// The addresses of services: shown, opened and copied.
import type { Service } from '../../client/browser.ts';
import { copyText, notify } from './actions.ts';
import { serviceByName } from './daemon.ts';

/** The states in which no process answers and no connection would start one. */
const UNREACHABLE: ReadonlySet<string> = new Set(['stopped', 'crashed', 'completed']);

/** The address of a service; null: it has no port. */
export const addressOf = ({ protocol, gatewayUrl, url }: Service): string | null =>
  (protocol === 'tcp' ? null : gatewayUrl) ?? url;

/** Whether a web page may answer at the address of a service. */
export const isPage = ({ protocol, status }: Service): boolean =>
  protocol !== 'tcp' && !UNREACHABLE.has(status);

/** Opens the address of the service `name` in a tab of its own. */
export function openAddress(name: string): void {
  const service = serviceByName.peek().get(name);
  const address = service ? addressOf(service) : null;
  if (service && address !== null && isPage(service)) open(address, '_blank', 'noopener,noreferrer');
  else notify('bad', `open ${name}`, 'It has no web page now.');
}

/** Copies the address of the service `name`, or its name if it has no port. */
export function copyAddress(name: string): void {
  const service = serviceByName.peek().get(name);
  const text = (service ? addressOf(service) : null) ?? name;
  void copyText(text, text);
}
