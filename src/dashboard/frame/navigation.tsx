// The page's name, its connection, and the links to its views: at the left, or at the bottom on a phone.

import { attention } from '../state/attention.ts';
import { connection, staleReason, version } from '../state/daemon.ts';
import { linkTo, shownPlace, VIEWS, type ViewName } from '../state/place.ts';
import { nextTheme, theme } from '../state/theme.ts';
import { Button } from './button.tsx';
import { helpIsOpen, paletteIsOpen } from './dialogs.ts';
import { Icon } from './icon.tsx';

const TITLES: Record<ViewName, string> = {
  services: 'Services',
  agents: 'Agents',
  logs: 'Logs',
  events: 'Events',
  cloud: 'Cloud',
};

const CONNECTION_WORDS = {
  connecting: 'connecting',
  connected: 'connected',
  lost: 'reconnecting',
  stale: 'lists are stale',
} as const;

/** Whether the daemon answers, and whether the page shows old data because it could not read the lists. */
function Connection() {
  const { state, detail } = connection.value;
  const isStale = state === 'connected' && staleReason.value !== '';
  const shown = isStale ? 'stale' : state;
  return (
    <p
      id="connection"
      class="connection"
      role="status"
      data-state={shown}
      title={isStale ? staleReason.value : detail}
    >
      <span class="connection-dot" aria-hidden="true" />
      {CONNECTION_WORDS[shown]}
    </p>
  );
}

/** The head of the left column. */
export function Brand() {
  return (
    <header class="brand">
      <a
        href={linkTo('services')}
        class="brand-name"
        title={version.value ? `version ${version.value.version}` : ''}
      >
        Berth
      </a>
      <Connection />
      <span class="tools-end">
        <Button
          kind="quiet"
          icon={theme.value}
          label={`theme: ${theme.value}`}
          onPress={() => {
            theme.value = nextTheme();
          }}
        />
        <Button
          kind="quiet"
          icon="search"
          label="go to anything"
          keyHint="Ctrl K"
          onPress={() => {
            paletteIsOpen.value = true;
          }}
        />
        <span class="wide-only">
          <Button
            kind="quiet"
            icon="keys"
            label="keys"
            keyHint="?"
            onPress={() => {
              helpIsOpen.value = true;
            }}
          />
        </span>
      </span>
    </header>
  );
}

/** The views. */
export function Navigation() {
  const counts: Partial<Record<ViewName, number>> = attention.value;
  return (
    <nav class="nav" aria-label="views">
      {VIEWS.map((view) => (
        <a
          key={view}
          href={linkTo(view)}
          class="nav-item"
          aria-current={shownPlace.value.view === view ? 'page' : undefined}
        >
          <Icon name={view} />
          <span>{TITLES[view]}</span>
          {(counts[view] ?? 0) > 0 && (
            <span class="badge number">
              {counts[view]}
              <span class="hidden-text"> need attention</span>
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}
