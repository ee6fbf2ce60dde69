// Loaded into every thread of a daemon by NODE_OPTIONS: a thread hangs when the file `<HANG_FILE>.<thread>`
// appears, and makes `<HANG_FILE>.<thread>.hangs` first.
const { existsSync, renameSync } = require('node:fs');
const { basename } = require('node:path');
const { isMainThread } = require('node:worker_threads');

// A worker has its arguments only after this.
const thread = () => (isMainThread ? 'main' : basename(process.argv[1] ?? '', '.cjs'));

function hangOnRequest(file) {
  renameSync(file, `${file}.hangs`);
  for (;;);
}

setInterval(() => {
  const file = `${process.env.HANG_FILE}.${thread()}`;
  if (existsSync(file)) hangOnRequest(file);
}, 50).unref();
