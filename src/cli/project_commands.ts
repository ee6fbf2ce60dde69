// One of the parts that the command line is built as. It holds the commands that read project files:
// zod and yaml, which only they need, take up to 90 ms to load.
export { configCommand } from './commands/config.ts';
export { downCommand } from './commands/down.ts';
export { importCommand } from './commands/import.ts';
export { initCommand } from './commands/init.ts';
export { projectSchemaCommand } from './commands/project_schema.ts';
export { upCommand } from './commands/up.ts';
export { registerStackHere } from './kit/project_stack.ts';
