// Two services of an import with one port: it stays with the one whose own it most likely is.
import { portPlaceholder } from './import_dotenv.ts';
import type { ImportedProject, ImportedService } from './imported_project.ts';
import { interpolate } from './interpolate.ts';

interface PortChoice {
  /** What a service gets in place of a port that another one has. */
  unknownPort: 'auto' | null;
  variable: (name: string) => string | undefined;
}

/** The number of a port here, where `variable` fills in its variables; NaN without one. */
function portNumber(port: ImportedService['port'], variable: PortChoice['variable']): number {
  if (typeof port !== 'string') return port ?? Number.NaN;
  try {
    return Number(interpolate(port, variable));
  } catch {
    // Whoever reads the project says what is wrong with it.
    return Number.NaN;
  }
}

/** `service` with `port` and without what needs its former port. */
function withPort(service: ImportedService, port: PortChoice['unknownPort']): ImportedService {
  const { name, env, ready, protocol } = service;
  const rows = [...(env ?? [])].filter(([, value]) => port !== null || value !== portPlaceholder(name));
  return {
    ...service,
    port,
    protocol: port === null ? undefined : protocol,
    ready: ready === 'tcp' ? undefined : ready,
    env: rows.length > 0 ? new Map(rows) : undefined,
  };
}

/** `project` with each port in one service, and a note for each service that has lost its port. */
export function withDistinctPorts(project: ImportedProject, choice: PortChoice): ImportedProject {
  const { services, notes, guessedPorts } = project;
  const rows = services.map((service) => ({ service, port: portNumber(service.port, choice.variable) }));
  const isGuessed = ({ service }: (typeof rows)[number]): boolean => guessedPorts?.has(service.name) === true;
  const told = [...rows.filter((row) => !isGuessed(row)), ...rows.filter(isGuessed)];
  // In a map, the last one of a key stays.
  const owners = new Map(told.toReversed().map(({ service, port }) => [port, service.name]));
  const lost: string[] = [];
  const distinct = rows.map(({ service, port }) => {
    const owner = owners.get(port);
    if (Number.isNaN(port) || owner === service.name) return service;
    const instead = choice.unknownPort === null ? '' : '; it gets a free one in $PORT';
    lost.push(`${service.name}: port ${port} is left out, as ${owner} has it${instead}`);
    return withPort(service, choice.unknownPort);
  });
  return { ...project, services: distinct, notes: [...notes, ...lost] };
}
