// Copies what is shown to the clipboard of the user's terminal, and opens it in the browser.

import { shownAddress } from '../../protocol/port_protocol.ts';
import { selectedRow, shownWorkload } from './list_steps.ts';
import { entryPieces, nameWidthOf, plainTextOf } from './log_lines.ts';
import { firstShown, logRows, shownLog } from './log_steps.ts';
import { type Model, type Step, viewOf } from './model.ts';
import { wrapPieces } from './styled_line.ts';

/** About the most that terminals accept, in UTF-16 units. A longer text is cut at the end. */
const MAX_COPIED = 48 * 1024;

const say = (model: Model, text: string): Step => [{ ...model, notice: { tone: 'bad', text } }];

function copy(model: Model, text: string): Step {
  const copied = text.slice(0, MAX_COPIED);
  return [
    { ...model, notice: { tone: 'good', text: `copied: ${copied}` } },
    { kind: 'copy', text: copied },
  ];
}

/** The name and the URL of the shown or selected service; null: none. */
function shownService(model: Model): { name: string; url: string | null; isPage: boolean } | null {
  const view = viewOf(model);
  const row = selectedRow(model);
  const selected = view.kind === 'list' && row?.kind === 'service' ? row.service.name : null;
  const name = view.kind === 'details' ? view.name : selected;
  const service = model.services?.find((one) => one.name === name);
  if (!service) return null;
  const isPage = service.protocol !== 'tcp';
  const url = (isPage ? service.gatewayUrl : null) ?? shownAddress(service);
  return { name: service.name, url, isPage };
}

/** Copies the URL of the shown or selected service, or its name if it has no URL, or a workload's name. */
export function copyShown(model: Model): Step {
  const service = shownService(model);
  if (service) return copy(model, service.url ?? service.name);
  const row = viewOf(model).kind === 'list' ? selectedRow(model) : undefined;
  const workload = row?.kind === 'workload' ? row.workload : shownWorkload(model);
  return workload
    ? copy(model, `${workload.namespace}/${workload.name}`)
    : say(model, 'Nothing is selected that can be copied.');
}

/** Opens the URL of the shown or selected service. */
export function openShownUrl(model: Model): Step {
  const service = shownService(model);
  if (!service) return say(model, 'Only services and agents have URLs.');
  if (service.url === null) return say(model, `${service.name} has no port, so it has no URL.`);
  if (!service.isPage) return say(model, `${service.name} speaks no HTTP, so a browser cannot open it.`);
  return [model, { kind: 'openUrl', url: service.url }];
}

/** The index of the last entry on the screen. */
function lastShown(model: Model): number {
  const log = shownLog(model);
  if (!log) return -1;
  const first = firstShown(log, model);
  const last = log.entries.length - 1;
  if (log.isFollowing) return last;
  if (!log.isWrapped) return Math.min(last, first + logRows(model) - 1);
  const names = nameWidthOf(log);
  let room = logRows(model);
  for (let at = first; at <= last; at += 1) {
    const entry = log.entries[at];
    if (entry) room -= wrapPieces(entryPieces(entry, log, names), model.size.columns).length;
    if (room <= 0) return at;
  }
  return last;
}

/** Copies the line that was found last, or the last one on the screen, without its colours. */
export function copyLine(model: Model): Step {
  const log = shownLog(model);
  const entry = log?.entries[log.found ?? lastShown(model)];
  return entry ? copy(model, plainTextOf(entry)) : say(model, 'There is no line to copy.');
}
