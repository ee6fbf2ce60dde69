// The commands that read project files and other tools' files: loaded together, when one of them is called.
export { importCommand } from './import.ts';
export { initCommand } from './init.ts';
export { upCommand } from './up.ts';
