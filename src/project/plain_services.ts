// What a project file cannot say yet of a service of another tool's file: it is named instead.
import type { ImportedCheck, ImportedProject, ImportedService } from './imported_project.ts';

const describeCheck = ({ exec, http, log }: ImportedCheck): string =>
  exec === undefined ? (http ?? `a line with ${log}`) : `\`${exec}\``;

function plainService(service: ImportedService, notes: string[]): ImportedService {
  const { live, name, ready, restart, stop, ...rest } = service;
  const drop = (what: string): void => void notes.push(`${name}: ${what} is left out`);
  const plain: ImportedService = { name, ...rest };
  if (typeof ready === 'object' && ready.http !== undefined) plain.ready = ready.http;
  else if (typeof ready === 'object') {
    drop(`its ready-check, ${describeCheck(ready)},`);
    if (rest.port !== null) plain.ready = 'tcp';
  } else plain.ready = ready;
  if (live) drop(`its live-check, ${describeCheck(live)},`);
  if (typeof restart === 'object') {
    const { policy, ...limits } = restart;
    drop(`the limit of its restarts, ${Object.keys(limits).join(', ')},`);
    plain.restart = policy;
  } else plain.restart = restart;
  if (stop) {
    const { command, ...signals } = stop;
    if (command !== undefined) drop(`its stop command, \`${command}\`,`);
    plain.stop = signals;
  }
  return plain;
}

/** `project` with what a project file can say, and notes of the rest. */
export function plainServices({ notes, services }: ImportedProject): ImportedProject {
  const more: string[] = [];
  return { services: services.map((service) => plainService(service, more)), notes: [...notes, ...more] };
}
