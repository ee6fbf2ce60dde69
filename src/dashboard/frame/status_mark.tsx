// A state as a shape, a colour and a word: none of them is needed to tell the others apart.
import type { JSX } from 'preact';
import type { Service } from '../../client/browser.ts';
import { endText } from '../state/format.ts';

type Tone = 'good' | 'busy' | 'bad' | 'rest' | 'calm';

interface Look {
  tone: Tone;
  shape: () => JSX.Element;
}

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

const LOOKS: Readonly<Record<string, Look>> = {
  running: { tone: 'good', shape: disc },
  starting: { tone: 'busy', shape: half },
  stopping: { tone: 'busy', shape: half },
  stopped: { tone: 'rest', shape: ring },
  crashed: { tone: 'bad', shape: cross },
  sleeping: { tone: 'calm', shape: moon },
  completed: { tone: 'good', shape: tick },
  // Of agents.
  working: { tone: 'busy', shape: bars },
  blocked: { tone: 'bad', shape: diamond },
  idle: { tone: 'good', shape: disc },
  asleep: { tone: 'calm', shape: moon },
  exited: { tone: 'rest', shape: ring },
  // Of workloads and clusters.
  awake: { tone: 'good', shape: disc },
  waking: { tone: 'busy', shape: half },
  active: { tone: 'good', shape: disc },
};
const UNKNOWN: Look = { tone: 'rest', shape: dash };

const lookOf = (state: string): Look => (Object.hasOwn(LOOKS, state) ? (LOOKS[state] ?? UNKNOWN) : UNKNOWN);

/** The shape of a state alone, beside text that says the word. */
export function StateShape({ state }: { state: string }) {
  const { tone, shape } = lookOf(state);
  return (
    <svg class="mark" data-tone={tone} viewBox="0 0 12 12" aria-hidden="true">
      {shape()}
    </svg>
  );
}

/** The shape and the word. `detail` follows it, such as how a process ended. */
export function StateLabel({ state, detail = '' }: { state: string; detail?: string }) {
  return (
    <span class="state" data-tone={lookOf(state).tone} data-state={state}>
      <StateShape state={state} />
      <span>{state}</span>
      {detail !== '' && <span class="soft"> {detail}</span>}
    </span>
  );
}

/** How a service that has crashed ended; '' for any other. */
export const crashText = (service: Service): string => (service.status === 'crashed' ? endText(service) : '');
