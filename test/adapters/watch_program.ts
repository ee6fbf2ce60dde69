// Watches the folder it is given, and prints what is said of it.
import { WatchedTree } from '../../src/adapters/watched_tree.ts';
import { systemClock } from '../../src/runtime/clock.ts';

const print = (value: object): void => console.log(JSON.stringify(value));

new WatchedTree({
  clock: systemClock,
  cwd: process.argv[2] ?? '',
  paths: ['**'],
  ignore: [],
  debounceMs: 100,
  since: Date.now(),
  onChange: (paths) => print({ paths }),
  onState: print,
  onDefect: (error) => {
    throw error;
  },
});
setInterval(() => {}, 1_000);
