// The commands that read project files and other tools' files: loaded together, when one of them is called.
export { importFile } from './import.ts';
export { init } from './init.ts';
export { up } from './up.ts';
