// Preloaded by the build: at the end of its process or thread, every bundle's script stores its compiled code
// beside it.
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
    // The daemon's umask makes files private to its user, but the build must be readable by all.
    chmodSync(path, 0o644);
  }
});
