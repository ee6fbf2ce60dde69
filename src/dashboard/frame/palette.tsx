// The command palette: finds services, agents, views and actions by name.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Service } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { toneOf } from '../../presentation/state_tone.ts';
import { GROUP_ACTIONS } from '../state/actions.ts';
import { addressOf, copyAddress, isPage, openAddress } from '../state/addresses.ts';
import { clusterNames, workloadActionTitle, workloadPages } from '../state/cloud_data.ts';
import { serviceList, shownState } from '../state/daemon.ts';
import { go, openPane, VIEWS } from '../state/place.ts';
import { isAgent, sections } from '../state/sections.ts';
import { nextTheme, theme } from '../state/theme.ts';
import { requestAction, requestWorkloadAction } from './action_question.tsx';
import { sectionActions } from './bulk_actions.tsx';
import { helpIsOpen, paletteIsOpen } from './dialogs.ts';
import { showLog } from './dock.tsx';
import { ModalDialog } from './modal_dialog.tsx';

interface Command {
  /** The text that the palette shows and searches. */
  title: string;
  hint: string;
  /** Its rank while the search is empty, the smallest first; absent: after all commands with a rank. */
  rank?: number;
  run: () => void;
}

const VIEW = 0;
const URGENT = 1;
const NAME = 2;
const COMMON = 3;

const MAX_SHOWN = 50;

function serviceCommands(service: Service): Command[] {
  const { name } = service;
  const view = isAgent(name) ? 'agents' : 'services';
  const state = shownState(service);
  const rank = toneOf(state) === 'bad' ? URGENT : NAME;
  return [
    { title: name, hint: `${view.slice(0, -1)}, ${state}`, rank, run: () => go({ view, name }) },
    { title: `${name} log`, hint: 'log below', run: () => showLog(name) },
    ...(view === 'agents'
      ? [
          {
            title: `${name} terminal`,
            hint: 'terminal below',
            run: () => openPane({ kind: 'terminal', name }, true),
          },
        ]
      : []),
    ...(['start', 'stop', 'restart'] as const).map((action) => ({
      title: `${action} ${name}`,
      hint: 'action',
      run: () => requestAction(action, name),
    })),
    ...(isPage(service) && addressOf(service) !== null
      ? [{ title: `open ${name}`, hint: 'address', run: () => openAddress(name) }]
      : []),
    { title: `copy the address of ${name}`, hint: 'address', run: () => copyAddress(name) },
  ];
}

/** Commands for the workloads that have been read. */
const workloadCommands = (): Command[] =>
  workloadPages.rows.peek().flatMap((workload) => {
    const { id, namespace, name, kind, state, replicas } = workload;
    const action = replicas === 0 ? 'wake' : 'sleep';
    // Clusters, and the two kinds, may have the same name.
    const hint = visibleLine(`${kind} in ${clusterNames.peek().get(workload.cluster_id) ?? ''}`);
    return [
      {
        title: visibleLine(`${namespace}/${name}`),
        hint: `${hint}, ${state}`,
        run: () => go({ view: 'cloud', name: id, query: {} }),
      },
      {
        title: visibleLine(workloadActionTitle(action, workload)),
        hint,
        run: () => requestWorkloadAction(action, workload),
      },
    ];
  });

function allCommands(): Command[] {
  return [
    ...VIEWS.map((view) => ({
      title: view,
      hint: 'view',
      rank: VIEW,
      run: () => go({ view, name: null, query: {} }),
    })),
    ...(serviceList.peek() ?? []).flatMap(serviceCommands),
    ...sections.peek().map(({ title, services }) => ({
      title: `logs of ${title}`,
      hint: 'view',
      run: () =>
        go({ view: 'logs', name: null, query: { names: services.map(({ name }) => name).join(',') } }),
    })),
    ...sections
      .peek()
      .flatMap((section) => sectionActions(section, GROUP_ACTIONS))
      .filter(({ isOff }) => !isOff)
      .map(({ label, run }) => ({ title: label, hint: 'group', run })),
    ...workloadCommands(),
    {
      title: 'change the theme',
      hint: theme.peek(),
      run: () => {
        theme.value = nextTheme();
      },
    },
    {
      title: 'keys',
      hint: 'help',
      run: () => {
        helpIsOpen.value = true;
      },
    },
  ];
}

/** The score of `title`, lower is better: best if words begin the title, then a word. null: no match. */
function fitness(title: string, words: readonly string[]): number | null {
  const lower = title.toLowerCase();
  let score = lower.length / 100;
  for (const word of words) {
    const at = lower.indexOf(word);
    if (at < 0) return null;
    score += at === 0 ? 0 : /[\W_]/.test(lower[at - 1] ?? '') ? 1 : 3;
  }
  return score;
}

/** The commands that match `text`, best first; without a text, views and urgent commands first. */
function wanted(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0)
    return [...commands]
      .sort((one, other) => (one.rank ?? COMMON) - (other.rank ?? COMMON))
      .slice(0, MAX_SHOWN);
  return commands
    .flatMap((command) => {
      const score = fitness(command.title, words);
      return score === null ? [] : [{ command, score }];
    })
    .sort((one, other) => one.score - other.score)
    .slice(0, MAX_SHOWN)
    .map(({ command }) => command);
}

function PaletteList({
  found,
  at,
  choose,
}: {
  found: readonly Command[];
  at: number;
  choose: (one: Command) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: 'nearest' }), [at]);
  return (
    <div ref={list} id="palette-list" class="palette-list" role="listbox" aria-label="names and actions">
      {found.map((command, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys
        <div
          key={`${command.title} ${command.hint}`}
          id={`palette-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === at}
          onClick={() => choose(command)}
        >
          <span>{command.title}</span>
          <span class="soft">{command.hint}</span>
        </div>
      ))}
      {found.length === 0 && <p class="soft">Nothing has these words.</p>}
    </div>
  );
}

/** The content of the dialog, created each time that the dialog opens. */
function PaletteSearch() {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  // They do not follow the lists, so that no row moves before Enter, but for lists that were not read yet.
  const commands = useMemo(allCommands, [serviceList.value === null]);
  const found = wanted(commands, text);
  const choose = (command: Command): void => {
    paletteIsOpen.value = false;
    command.run();
  };
  const chosen = found[at];
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt(Math.min(found.length - 1, Math.max(0, at + step)));
    else if (event.key === 'Enter') chosen && choose(chosen);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        class="field"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        aria-label="name or action"
        placeholder="A name, or an action such as: restart web"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <PaletteList found={found} at={at} choose={choose} />
    </>
  );
}

/** The palette, while it is open. */
export const Palette = () => (
  <ModalDialog isOpen={paletteIsOpen} class="dialog palette" label="go to anything">
    <PaletteSearch />
  </ModalDialog>
);
