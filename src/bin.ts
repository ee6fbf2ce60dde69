#!/usr/bin/env node
// The command `berth`. The daemon and the command line share nothing but this file, so that each starts with its own code only.
const [first, second = '--'] = process.argv.slice(2);
const isDaemon = first === 'daemon' && second.startsWith('-') && second !== '--help' && second !== '-h';
if (isDaemon) import('./main.ts').then(({ main }) => main(process.argv.slice(3)));
else import('./cli/main.ts').then(({ main }) => main(process.argv.slice(2)));
