// For the build alone: every script of a bundle leaves its compiled code beside it when its process or thread
// ends.
const { chmodSync, writeFileSync } = require('node:fs');
const vm = require('node:vm');

const bundles = new Map();

vm.Script = class extends vm.Script {
  constructor(code, options) {
    super(code, options);
    if (options?.filename?.endsWith('.js')) bundles.set(options.filename, this);
  }
};

process.on('exit', () => {
  for (const [filename, script] of bundles) {
    const path = filename.replace(/\.js$/, '.bytecode');
    writeFileSync(path, script.createCachedData());
    // The daemon's umask is that of its own files, which are its user's alone.
    chmodSync(path, 0o644);
  }
});
