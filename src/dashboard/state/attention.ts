// What needs attention: crashed services, and agents that wait for an answer. The tab's title and icon show
// it.
import { computed, effect } from '@preact/signals';
import { attentionOf } from '../../presentation/sections.ts';
import { agentList, connection, serviceList } from './daemon.ts';

/** How many services and agents need attention, by view. */
export const attention = computed(() => attentionOf(serviceList.value ?? [], agentList.value));

const icon = (colour: string, text: string): string =>
  `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="${colour}"/>` +
      `<text x="8" y="12" font-size="11" font-weight="700" font-family="sans-serif" fill="#fff" text-anchor="middle">${text}</text></svg>`,
  )}`;

/** Keeps the title and the icon of the tab up to date. */
export function followAttention(): void {
  effect(() => {
    const { services: crashed, agents: blocked } = attention.value;
    const count = crashed + blocked;
    const isLost = connection.value.state === 'lost';
    document.title = `${count > 0 ? `(${count}) ` : ''}Berth${isLost ? ', reconnecting' : ''}`;
    const colour = isLost ? '#6b7280' : count > 0 ? '#b3261e' : '#14692b';
    const link = document.querySelector('link[rel="icon"]');
    link?.setAttribute('href', icon(colour, count > 0 ? String(Math.min(count, 99)) : 'B'));
  });
}
