// The version of the package, inserted by the build; undefined when run from the sources.
declare const BERTH_VERSION: string | undefined;

export const VERSION = typeof BERTH_VERSION === 'string' ? BERTH_VERSION : '0.0.0-source';
