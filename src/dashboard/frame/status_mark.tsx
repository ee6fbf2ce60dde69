// Shows a state as a shape, a colour and a word, so that each of them alone identifies the state.
import type { JSX } from 'preact';
import type { Service } from '../../client/browser.ts';
import { endText } from '../../presentation/format.ts';
import { toneOf } from '../../presentation/state_tone.ts';

const disc = () => <circle cx="6" cy="6" r="4.5" fill="currentColor" />;
const ring = () => <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.6" />;
const half = () => (
  <>
    {ring()}
    <path d="M6 2a4 4 0 0 1 0 8z" fill="currentColor" />
  </>
);
const cross = () => (
  <path
    d="M2.2 2.2l7.6 7.6M9.8 2.2L2.2 9.8"
    stroke="currentColor"
    stroke-width="2.2"
    stroke-linecap="round"
  />
);
const moon = () => <path d="M9.9 7.6A4.4 4.4 0 0 1 4.4 2.1a4.4 4.4 0 1 0 5.5 5.5z" fill="currentColor" />;
const tick = () => (
  <path
    d="M2 6.4l2.8 2.8L10 3.6"
    fill="none"
    stroke="currentColor"
    stroke-width="2"
    stroke-linecap="round"
    stroke-linejoin="round"
  />
);
const diamond = () => <path d="M6 .8L11.2 6 6 11.2.8 6z" fill="currentColor" />;
const bars = () => (
  <path d="M2.5 9.5v-3M6 9.5v-7M9.5 9.5v-5" stroke="currentColor" stroke-width="2" stroke-linecap="round" />
);
const dash = () => <path d="M2 6h8" stroke="currentColor" stroke-width="2" stroke-linecap="round" />;

const SHAPES: Readonly<Record<string, () => JSX.Element>> = {
  running: disc,
  starting: half,
  stopping: half,
  stopped: ring,
  crashed: cross,
  sleeping: moon,
  completed: tick,
  // States of agents.
  working: bars,
  blocked: diamond,
  idle: disc,
  asleep: moon,
  exited: ring,
  // States of workloads and clusters.
  awake: disc,
  waking: half,
  active: disc,
  unreachable: cross,
  refused: cross,
  failed: cross,
};

const shapeOf = (state: string): JSX.Element =>
  (Object.hasOwn(SHAPES, state) ? SHAPES[state] : dash)?.() ?? dash();

/** Only the shape of a state, beside a text that names the state. */
export function StateShape({ state }: { state: string }) {
  return (
    <svg class="mark" data-tone={toneOf(state)} viewBox="0 0 12 12" aria-hidden="true">
      {shapeOf(state)}
    </svg>
  );
}

/** The shape and the word, followed by `detail`, such as how a process ended. */
export function StateLabel({ state, detail = '' }: { state: string; detail?: string }) {
  return (
    <span class="state" data-tone={toneOf(state)} data-state={state}>
      <StateShape state={state} />
      <span>{state}</span>
      {detail !== '' && <span class="soft"> {detail}</span>}
    </span>
  );
}

/** How a service that has crashed ended; '' for any other. */
export const crashText = (service: Service): string => (service.status === 'crashed' ? endText(service) : '');
