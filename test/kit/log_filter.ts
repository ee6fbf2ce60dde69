// A filter of logs that leaves nothing out.
import type { LogFilterSpec } from '../../src/protocol/logs.ts';

export const EVERY_LINE: LogFilterSpec = {
  q: null,
  regex: null,
  level: null,
  stream: null,
  since: null,
  until: null,
  context: 0,
};
