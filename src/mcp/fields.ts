// Fields shared by the inputs of several tools.
import { z } from '../adapters/zod.ts';
import { HTTP } from '../settings/limits.ts';

/** A duration in milliseconds. */
export const durationMs = (about: string) =>
  z.int().min(0).max(HTTP.maxQueryDurationMs).optional().describe(`Milliseconds. ${about}`);

/** The name of a service or an agent. */
export const nameField = z.string().min(1).describe('Its name, from `list`');

export const stackField = z.string().min(1).optional().describe('Only those of this stack');

/** A line for each item, or `none` if there is no item. */
export const linesOf = <T>(items: readonly T[], line: (item: T) => string, none: string): string =>
  items.length > 0 ? items.map(line).join('\n') : none;

/** Seconds with one decimal, such as `1.2 s`. */
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
