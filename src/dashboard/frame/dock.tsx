// The dock below the view: logs and terminals side by side, with a height that the browser remembers.
import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { LogPanel } from '../logs/log_view.tsx';
import { serviceByName, serviceList } from '../state/daemon.ts';
import { closePane, linkTo, openPane, type Pane, panes, shownPlace } from '../state/place.ts';
import { isAgent } from '../state/sections.ts';
import { TerminalView } from '../views/terminal_view.tsx';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

const HEIGHT_KEY = 'berth.dock';
const FOLLOW_KEY = 'berth.dock.follow';
const MIN_PART = 0.15;
const MAX_PART = 0.85;
const KEY_STEP = 0.05;

const withinBounds = (part: number): number => Math.min(MAX_PART, Math.max(MIN_PART, part));

/** The fraction of the window's height that the dock takes. */
const dockPart = signal(withinBounds(Number(localStorage.getItem(HEIGHT_KEY) ?? 0.42) || 0.42));
const isMaximised = signal(false);
/** Whether the dock shows the log of the selected service while no pane is open. */
const followsSelection = signal(localStorage.getItem(FOLLOW_KEY) !== 'no');

function setPart(part: number): void {
  dockPart.value = withinBounds(part);
  localStorage.setItem(HEIGHT_KEY, String(dockPart.value));
}

function setFollows(isOn: boolean): void {
  followsSelection.value = isOn;
  localStorage.setItem(FOLLOW_KEY, isOn ? 'yes' : 'no');
}

/** The panes to show: the open ones, or else the log of the selected service. */
function shownPanes(): { list: readonly Pane[]; isOwn: boolean } {
  const { view, name } = shownPlace.value;
  if (panes.value.length > 0) return { list: panes.value, isOwn: true };
  const isMissing = serviceList.value !== null && !serviceByName.value.has(name ?? '');
  const follows = followsSelection.value && view === 'services' && name !== null && !isMissing;
  return { list: follows ? [{ kind: 'log', name }] : [], isOwn: false };
}

function Handle() {
  const move = (event: PointerEvent): void => {
    if (event.buttons === 1) setPart(1 - event.clientY / innerHeight);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a line that moves is no rule between paragraphs
    <div
      class="handle"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label="height of the panes"
      aria-valuemin={MIN_PART * 100}
      aria-valuemax={MAX_PART * 100}
      aria-valuenow={Math.round(dockPart.value * 100)}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={move}
      onKeyDown={({ key }) => {
        if (key === 'ArrowUp') setPart(dockPart.value + KEY_STEP);
        if (key === 'ArrowDown') setPart(dockPart.value - KEY_STEP);
      }}
    />
  );
}

function PaneHead({ pane, isOwn }: { pane: Pane; isOwn: boolean }) {
  const { kind, name } = pane;
  const isLarge = isMaximised.value;
  const close = (): void => {
    isMaximised.value = false;
    if (isOwn) closePane(pane);
    else setFollows(false);
  };
  return (
    <header class="pane-head">
      <Icon name={kind === 'log' ? 'logs' : 'agents'} />
      <h2>
        <a href={linkTo(isAgent(name) ? 'agents' : 'services', name)}>{name}</a>
      </h2>
      <span class="tools-end">
        {kind === 'log' && (
          <Button
            kind="quiet"
            icon="open"
            label={`open the log of ${name} as a view`}
            onPress={() => location.assign(linkTo('logs', null, { names: name }))}
          />
        )}
        {!isOwn && (
          <Button
            kind="quiet"
            icon="split"
            label={`keep the log of ${name} open`}
            onPress={() => openPane(pane, true)}
          />
        )}
        <Button
          kind="quiet"
          icon={isLarge ? 'shrink' : 'grow'}
          label={isLarge ? 'make the panes small' : 'make the panes large'}
          onPress={() => {
            isMaximised.value = !isLarge;
          }}
        />
        <Button kind="quiet" icon="close" label={`close the ${kind} of ${name}`} onPress={close} />
      </span>
    </header>
  );
}

function PaneBody({ pane: { kind, name } }: { pane: Pane }) {
  const selection = useMemo(() => ({ names: [name] }), [name]);
  return kind === 'log' ? <LogPanel selection={selection} /> : <TerminalView name={name} />;
}

/** Shows the log of `name` below the view. The log follows the selection if no pane is open. */
export function showLog(name: string): void {
  const { view, name: selected } = shownPlace.peek();
  if (panes.peek().length === 0 && view === 'services' && selected === name) setFollows(true);
  else openPane({ kind: 'log', name });
}

/** The panes below the view; null: there are none. */
export function Dock() {
  const { list, isOwn } = shownPanes();
  if (list.length === 0) return null;
  const height = isMaximised.value ? '100%' : `${dockPart.value * 100}%`;
  return (
    <div class="dock" data-large={isMaximised.value} style={{ height }}>
      <Handle />
      <div class="panes">
        {list.map((pane) => (
          <section key={`${pane.kind} ${pane.name}`} class="pane" aria-label={`${pane.kind} of ${pane.name}`}>
            <PaneHead pane={pane} isOwn={isOwn} />
            <PaneBody pane={pane} />
          </section>
        ))}
      </div>
    </div>
  );
}
