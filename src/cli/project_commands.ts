// One part of the built command line: the commands that read project files. Only they need zod and yaml,
// which take up to 90 ms to load.
export { configCommand } from './commands/config.ts';
export { downCommand } from './commands/down.ts';
export { importCommand } from './commands/import.ts';
export { initCommand } from './commands/init.ts';
export { projectSchemaCommand } from './commands/project_schema.ts';
export { upCommand } from './commands/up.ts';
export { projectServiceNames } from './kit/load_project.ts';
export { registerStackHere } from './kit/project_stack.ts';
