// The build preloads this file: when a process or thread exits, it stores the compiled code of every bundle
// beside the bundle.
const { chmodSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const vm = require('node:vm');

const output = process.env.BERTH_KEEP_BYTECODE_IN;
const bundles = new Map();

vm.Script = class extends vm.Script {
  constructor(code, options) {
    super(code, options);
    const [, bundle] = /^berth\/(.+)\.js$/.exec(options?.filename) ?? [];
    if (bundle) bundles.set(join(output, `${bundle}.bytecode`), this);
  }
};

process.on('exit', () => {
  for (const [path, script] of bundles) {
    writeFileSync(path, script.createCachedData());
    // The daemon's umask makes files private to its user, but the build must be readable by all.
    chmodSync(path, 0o644);
  }
});
