// The text of an env file.
import { parseEnv } from 'node:util';

/** Written by some editors at the start of a file; it is no part of the first name. */
const BYTE_ORDER_MARK = '\uFEFF';

/** The variables in the text of an env file. */
export const parseEnvText = (text: string): [key: string, value: string][] =>
  Object.entries(parseEnv(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)).map(
    ([key, value = '']) => [key, value],
  );
