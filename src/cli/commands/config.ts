// berth config
import { stringifyYaml } from '../../adapters/yaml.ts';
import { countText } from '../../presentation/format.ts';
import type { ProjectService } from '../../project/project_service.ts';
import { limitsEntry, restartEntry } from '../../project/run_shapes.ts';
import { defineCommand, flagOption, textOption } from '../kit/command.ts';
import { relativePath } from '../kit/format.ts';
import { loadProject } from '../kit/load_project.ts';

const watchEntry = ({ debounceMs, ...watch }: NonNullable<ProjectService['watch']>): object => ({
  ...watch,
  debounce_ms: debounceMs,
});

const scheduleEntry = ({ cron, timezone, catchUp }: NonNullable<ProjectService['schedule']>) => ({
  cron,
  timezone: timezone ?? undefined,
  catch_up: catchUp || undefined,
});

/** A service with the keys of berth.yaml; JSON omits undefined values. */
const toFileEntry = (service: ProjectService): [name: string, entry: object] => {
  const { sleep, stop: command, stopSignal, stopGrace } = service;
  const stop = { command: command ?? undefined, signal: stopSignal, grace: stopGrace };
  return [
    service.name,
    {
      cmd: service.cmd,
      cwd: service.cwd,
      port: service.isPortFixed ? { fixed: service.port } : service.port,
      protocol: service.protocol,
      ready: service.ready ?? undefined,
      live: service.live ?? undefined,
      env: service.env.length > 0 ? Object.fromEntries(service.env) : undefined,
      depends_on: service.dependsOn.length > 0 ? service.dependsOn : undefined,
      group: service.group ?? undefined,
      kind: service.kind === 'task' ? service.kind : undefined,
      schedule: service.schedule ? scheduleEntry(service.schedule) : undefined,
      inputs: service.inputs.length > 0 ? service.inputs : undefined,
      restart: restartEntry(service.restart),
      limits: service.limits ? limitsEntry(service.limits) : undefined,
      autostart: service.autostart || undefined,
      sleep: sleep ? { after_minutes: sleep.afterMinutes } : undefined,
      start_timeout: service.startTimeout,
      watch: service.watch ? watchEntry(service.watch) : undefined,
      stop: Object.values(stop).some((value) => value !== undefined) ? stop : undefined,
    },
  ];
};

export const configCommand = defineCommand({
  about:
    'Prints each service with its variables filled in, its env files read and its paths absolute, so with ' +
    'all its secrets. Needs no daemon. Exit code 2 if the file has mistakes.',
  options: {
    file: textOption(
      '-f, --file <file>',
      'project file; default: berth.yaml here or in a folder above',
      'file',
    ),
    quiet: flagOption('-q, --quiet', 'only check the file'),
  },
  run: async (context, _args, { file, quiet }) => {
    const project = await loadProject(context, file);
    if (quiet) {
      const count = countText(project.services.length, 'service');
      context.out.note(`${relativePath(project.file)} is correct: ${count}.`);
      return;
    }
    const entries = project.services.map(toFileEntry);
    // A service may be called __proto__, which an assignment to an object would lose.
    const services = JSON.parse(JSON.stringify(Object.fromEntries(entries)));
    context.out.record({ file: project.file, services }, () => stringifyYaml({ services }).trimEnd());
  },
});
