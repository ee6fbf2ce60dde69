// The version of the package, put in by the build; from the sources it is not known.
declare const BERTH_VERSION: string | undefined;

export const VERSION = typeof BERTH_VERSION === 'string' ? BERTH_VERSION : '0.0.0-source';
