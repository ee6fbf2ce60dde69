// The icons of buttons and of the navigation, drawn on a grid of 16.
const PATHS = {
  services: 'M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11z',
  agents: 'M2 3.5h12v9H2zM4.5 6.5l2 1.5-2 1.5M8.5 9.5h3',
  logs: 'M2.5 3.5h11M2.5 6.5h7M2.5 9.5h9M2.5 12.5h5',
  events: 'M8 2.5v5.5l3.2 2M8 1.8a6.2 6.2 0 1 0 .01 0z',
  cloud: 'M4.6 12.5a3 3 0 0 1-.3-6 4 4 0 0 1 7.6 1 2.6 2.6 0 0 1-.5 5z',
  start: 'M4.5 3v10l8-5z',
  stop: 'M4 4h8v8H4z',
  restart: 'M12.8 6.2A5.2 5.2 0 1 0 13.2 9M13 2.5v4H9',
  sleep: 'M13 9.6A5.4 5.4 0 0 1 6.4 3a5.4 5.4 0 1 0 6.6 6.6z',
  wake: 'M8 5a3 3 0 1 0 .01 0zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9L13 13M13 3l-1.1 1.1M4.1 11.9L3 13',
  remove: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9',
  close: 'M4 4l8 8M12 4l-8 8',
  back: 'M10 3L5 8l5 5',
  split: 'M2.5 3.5h11v9h-11zM8 3.5v9',
  grow: 'M9.5 2.5h4v4M13.5 2.5L9 7M6.5 13.5h-4v-4M2.5 13.5L7 9',
  shrink: 'M13.5 6.5h-4v-4M9.5 6.5L14 2M2.5 9.5h4v4M6.5 9.5L2 14',
  search: 'M7 2.5a4.5 4.5 0 1 0 .01 0zM10.5 10.5L14 14',
  open: 'M6.5 3.5h-4v10h10v-4M9 2.5h4.5V7M13 3L7.5 8.5',
  warning: 'M8 2.5l6 11H2zM8 6.6v3.2M8 11.6h.1',
  pause: 'M5 3.5v9M11 3.5v9',
  clear: 'M8 2a6 6 0 1 0 .01 0zM3.8 12.2l8.4-8.4',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  download: 'M8 2.5v8M4.5 7.5L8 11l3.5-3.5M2.5 13.5h11',
  wrap: 'M2.5 4h11M2.5 8h9a2.2 2.2 0 0 1 0 4.4H8M9.8 10.4l-2 2 2 2M2.5 12.4h2.5',
  mark: 'M2.5 2.5h11v11h-11zM5 8l2.2 2.2L11 6',
  more: 'M3.2 8h.1M8 8h.1M12.8 8h.1',
  system: 'M2 3h12v8H2zM6 13.5h4M8 11v2.5',
  light:
    'M8 5a3 3 0 1 0 .01 0zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9L13 13M13 3l-1.1 1.1M4.1 11.9L3 13',
  dark: 'M13 9.6A5.4 5.4 0 0 1 6.4 3a5.4 5.4 0 1 0 6.6 6.6z',
  keys: 'M1.5 4.5h13v7h-13zM4 7h.1M6.7 7h.1M9.3 7h.1M12 7h.1M5 9.5h6',
  chevron: 'M5.5 3.5L10 8l-4.5 4.5',
} as const;
export type IconName = keyof typeof PATHS;

/** An icon, hidden from screen readers: the element around it has an accessible name. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
