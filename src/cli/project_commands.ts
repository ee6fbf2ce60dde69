// The commands that read project files and other tools' files: loaded together, when one of them is called.
export { importCommand } from './commands/import.ts';
export { initCommand } from './commands/init.ts';
export { upCommand } from './commands/up.ts';
