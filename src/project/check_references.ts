// Checks references between the services of a project file, and fields that depend on each other. Each field
// has been validated separately before.
import { dependencyName, dependencyText, findDependencyCycle } from '../protocol/dependency_order.ts';
import { NO_SLEEP } from '../protocol/registration.ts';
import type { RestartPolicy } from '../protocol/service.ts';
import { addressVariables, PLACEHOLDER } from '../protocol/stacks.ts';
import { probesOwnPort } from './check_text.ts';
import type { ProjectCheck } from './project_environment.ts';
import type { ProjectService } from './project_service.ts';
import { suggestion } from './spelling.ts';

const policyOf = (restart: ProjectService['restart']): RestartPolicy | undefined =>
  typeof restart === 'object' ? restart.policy : restart;

/** Checks the fields that depend on the kind: a task is done when it ends, and only tasks complete. */
function checkKinds(check: ProjectCheck, services: readonly ProjectService[]): void {
  const tasks = new Set(services.filter(({ kind }) => kind === 'task').map(({ name }) => name));
  for (const { name, dependsOn, inputs, kind, port, ready, restart, schedule, sleep } of services) {
    const isTask = kind === 'task';
    const endless = dependsOn.find(
      (one) => typeof one !== 'string' && one.condition === 'completed' && !tasks.has(one.name),
    );
    const conditions = new Set(dependsOn.map(dependencyText));
    const twice = conditions.size > new Set(dependsOn.map(dependencyName)).size;
    const faults: [key: string, isWrong: boolean, message: string][] = [
      ['schedule', !isTask && schedule !== null, 'is for tasks alone'],
      ['inputs', !isTask && inputs.length > 0, 'are for tasks alone'],
      ['ready', isTask && ready !== null, 'is not for a task, which is done when it ends'],
      [
        'restart',
        isTask && policyOf(restart) === 'always',
        'must not be always for a task, which runs to its end',
      ],
      [
        'depends_on',
        endless !== undefined,
        `${dependencyName(endless ?? '')} is no task, so it never completes`,
      ],
      ['sleep', sleep !== null && isTask, NO_SLEEP.task],
      ['sleep', sleep !== null && !isTask && port === null, NO_SLEEP.noPort],
      ['depends_on', twice, 'has two conditions for the same service'],
    ];
    for (const [key, isWrong, message] of faults)
      if (isWrong)
        check.problems.push({
          at: check.positionAt('services', name, key),
          message: `services.${name}.${key}: ${message}`,
        });
  }
}

/** The texts of a service that may have placeholders, each with its place in the service. */
function filledTexts({ cmd, cwd, ready, live, env }: ProjectService): [path: string[], text: string][] {
  const checks = Object.entries({ ready, live }).flatMap(([key, check]): [string[], string][] => {
    if (check === null) return [];
    if (typeof check === 'string') return [[[key], check]];
    return Object.entries(check).map(([inner, value]) => [[key, inner], JSON.stringify(value)]);
  });
  const variables = env.map(([name, value]): [string[], string] => [['env', name], value]);
  return [[['cmd'], cmd], [['cwd'], cwd], ...checks, ...variables];
}

/** The services whose addresses the placeholders of a text name. */
const namesAsked = (text: string): string[] =>
  [...text.matchAll(PLACEHOLDER)].flatMap(([, dollar, body = '']) =>
    dollar === '' && body.includes('.') ? [body.slice(body.indexOf('.') + 1)] : [],
  );

/** Whether a text of `service` names the address of `other`, by a placeholder or by its variables. */
export function refersTo(service: ProjectService, other: string): boolean {
  const own = new Set(service.env.map(([name]) => name));
  const variables = Object.values(addressVariables(other)).filter((name) => !own.has(name));
  return filledTexts(service).some(([, text]) => {
    const words: readonly string[] = text.match(/\w+/g) ?? [];
    return namesAsked(text).includes(other) || variables.some((name) => words.includes(name));
  });
}

/** Checks references between services: unknown names, cycles, a port used twice. */
export function checkReferences(check: ProjectCheck, services: readonly ProjectService[]): void {
  const names = services.map(({ name }) => name);
  const owners = new Map<number, string>();
  for (const service of services) {
    for (const [keys, text] of filledTexts(service)) {
      const path = ['services', service.name, ...keys];
      for (const other of new Set(namesAsked(text).filter((asked) => !names.includes(asked)))) {
        const message = `${path.join('.')}: there is no service ${other}${suggestion(other, names)}`;
        check.problems.push({ at: check.positionAt(...path), message });
      }
    }
  }
  for (const { name, dependsOn, port, ready, live } of services) {
    for (const other of dependsOn.map(dependencyName).filter((one) => !names.includes(one))) {
      const message = `services.${name}.depends_on: there is no service ${other}${suggestion(other, names)}`;
      check.problems.push({ at: check.positionAt('services', name, 'depends_on'), message });
    }
    for (const [key, asked] of Object.entries({ ready, live })) {
      if (port !== null || !probesOwnPort(asked)) continue;
      const message = `services.${name}.${key}: probes the service's own port, but its port is null`;
      check.problems.push({ at: check.positionAt('services', name, key), message });
    }
    if (port === 'auto' || port === null) continue;
    const owner = owners.get(port);
    if (owner === undefined) owners.set(port, name);
    else {
      const message = `services.${name}.port: ${port} is the port of ${owner} already`;
      check.problems.push({ at: check.positionAt('services', name, 'port'), message });
    }
  }
  checkKinds(check, services);
  const cycle = findDependencyCycle(services);
  if (cycle) {
    const message = `services.${cycle[0]}.depends_on: has a cycle: ${cycle.join(' -> ')}`;
    check.problems.push({ at: check.positionAt('services', cycle[0] ?? '', 'depends_on'), message });
  }
}
