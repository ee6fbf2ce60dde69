// The terminal of an agent. All viewers share its screen; this one stays attached while it is open.
import { type Signal, useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { bytesText } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { ChoiceAction } from '../frame/choice_action.tsx';
import { actOn, copyText } from '../state/actions.ts';
import { agentByName } from '../state/daemon.ts';
import { clickedAgent } from '../state/place.ts';
import { themeChanges } from '../state/theme.ts';
import { AttachedTerminal, type TerminalStatus, type TypingMode } from './attached_terminal.ts';

/** Keys that a phone's keyboard lacks, and what they send: bytes, or the name of a cursor key. */
const PHONE_KEYS: readonly (readonly [label: string, shown: string, sent: string])[] = [
  ['Esc', 'Esc', '\x1b'],
  ['Tab', 'Tab', '\t'],
  ['Up', '↑', 'Up'],
  ['Down', '↓', 'Down'],
  ['Left', '←', 'Left'],
  ['Right', '→', 'Right'],
  ['Enter', '⏎', '\r'],
];

function PhoneKeys({ terminal, isControl }: { terminal: AttachedTerminal; isControl: Signal<boolean> }) {
  return (
    <fieldset class="phone-keys" aria-label="keys">
      <button
        type="button"
        class="chip"
        aria-pressed={isControl.value}
        onClick={() => {
          isControl.value = !isControl.value;
          terminal.isControlHeld = isControl.value;
          terminal.focus();
        }}
      >
        Ctrl
      </button>
      {PHONE_KEYS.map(([label, shown, sent]) => (
        <button
          type="button"
          key={label}
          class="chip"
          aria-label={label}
          // Keeps the phone's keyboard open.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => terminal.type(sent)}
        >
          {shown}
        </button>
      ))}
    </fieldset>
  );
}

const STATUS_TEXTS: Record<TerminalStatus['word'], string> = {
  loading: 'attaching',
  attached: 'attached',
  lost: 'reattaching',
  ended: 'ended',
};

const MODES: readonly (readonly [mode: TypingMode, text: string])[] = [
  ['shared', 'type beside others'],
  ['write', 'take over'],
  ['observe', 'watch only'],
];

function ModeChoice({ terminal, mode }: { terminal: AttachedTerminal; mode: Signal<TypingMode> }) {
  return (
    <ChoiceAction
      label="who types"
      value={mode.value}
      options={MODES}
      action="change"
      onPick={(value) => terminal.setMode(MODES.find(([one]) => one === value)?.[0] ?? 'shared')}
    />
  );
}

function TerminalTools({
  name,
  terminal,
  status,
  mode,
}: {
  name: string;
  terminal: AttachedTerminal;
  status: TerminalStatus;
  mode: Signal<TypingMode>;
}) {
  const [wanted, setWanted] = useState('');
  return (
    <div class="tools">
      <span class="soft number" role="status" data-state={status.word}>
        {STATUS_TEXTS[status.word]}
        {status.size !== null && ` · ${status.size.join('×')}`}
        {status.detail !== '' && ` · ${status.detail}`}
        {status.unsent > 0 && ` · ${bytesText(status.unsent)} of input waiting for the program`}
      </span>
      <span class="tools-end">
        <ModeChoice terminal={terminal} mode={mode} />
        <input
          type="search"
          class="field"
          aria-label={`find in the terminal of ${name}`}
          placeholder="Find"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') terminal.find(wanted, !event.shiftKey);
          }}
        />
        <Button
          kind="quiet"
          icon="copy"
          label="copy the screen"
          onPress={() => void copyText(terminal.screenText(), 'the screen')}
        />
        <Button
          kind="quiet"
          icon="grow"
          label="fit the terminal to this pane"
          onPress={() => terminal.fit()}
        />
      </span>
    </div>
  );
}

/** The terminal of the agent `name`. `isMain`: it takes the keyboard after a click on the agent. */
export function TerminalView({ name, isMain = false }: { name: string; isMain?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const status = useSignal<TerminalStatus>({ word: 'loading', detail: '', size: null, unsent: 0 });
  const isControl = useSignal(false);
  const mode = useSignal<TypingMode>('shared');
  const terminal = useMemo(() => new AttachedTerminal(name, status, isControl, mode), [name]);
  const pid = agentByName.value.get(name)?.pid ?? null;
  useEffect(() => {
    if (pid !== null && box.current) void terminal.attach(box.current);
  }, [terminal, pid]);
  useEffect(() => {
    const sizes = new ResizeObserver(() => terminal.fit());
    if (box.current) sizes.observe(box.current);
    return () => {
      sizes.disconnect();
      terminal.close();
    };
  }, [terminal]);
  useSignalEffect(() => {
    if (!isMain || clickedAgent.value !== name) return;
    clickedAgent.value = null;
    if (agentByName.peek().get(name)?.pid) terminal.focus();
  });
  useSignalEffect(() => {
    themeChanges.value;
    terminal.recolour();
  });
  return (
    <div class="terminal-view">
      <TerminalTools name={name} terminal={terminal} status={status.value} mode={mode} />
      <div class="terminal-box" ref={box} />
      {pid === null && (
        <div class="terminal-end">
          <p>Nothing runs here.</p>
          <Button
            kind="main"
            icon="start"
            text="start"
            label={`start ${name}`}
            onPress={() => void actOn('start', name)}
          />
        </div>
      )}
      <PhoneKeys terminal={terminal} isControl={isControl} />
    </div>
  );
}
