// Reads TOML. The only file that imports smol-toml, and only when a file is read.
import { TEXT_FILE } from './limits.ts';

/** A text is not valid TOML. `line`: where, counted from 1. */
export class TomlFault extends Error {
  override readonly name = 'TomlFault';
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/** The document in `text`. Rejects with TomlFault. */
export async function parseToml(text: string): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(text, { maxDepth: TEXT_FILE.maxTomlDepth });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const line = error instanceof TomlError ? error.line : 1;
    throw new TomlFault(error.message.split('\n')[0] ?? 'no TOML', line);
  }
}
