// The problems of a project file, reported all at once, each with its position.
import type { YamlPosition } from '../adapters/yaml.ts';

export interface ProjectProblem {
  at: YamlPosition;
  message: string;
}

/** A project file that cannot be used. The message lists each problem with its position and its line. */
export class ProjectError extends Error {
  override readonly name = 'ProjectError';
  readonly file: string;
  readonly problems: readonly ProjectProblem[];

  /**
   * `text` is the content of the file, from which lines are shown; '' without any. null: no position is
   * shown, because the file has been converted.
   */
  constructor(file: string, text: string | null, problems: readonly ProjectProblem[]) {
    const lines = text?.split('\n') ?? null;
    const sorted = [...problems].sort((a, b) => a.at.line - b.at.line || a.at.column - b.at.column);
    super(sorted.map((problem) => formatProblem(file, lines, problem)).join('\n'));
    this.file = file;
    this.problems = sorted;
  }
}

function formatProblem(
  file: string,
  lines: readonly string[] | null,
  { at, message }: ProjectProblem,
): string {
  if (lines === null) return `${file}: ${message}`;
  const head = `${file}:${at.line}:${at.column}: ${message}`;
  const line = lines[at.line - 1];
  if (!line?.trim()) return head;
  const number = String(at.line);
  // Tabs stay tabs in the second line, so that the mark lines up.
  const indent = line.slice(0, at.column - 1).replace(/[^\t]/g, ' ');
  return `${head}\n  ${number} | ${line}\n  ${' '.repeat(number.length)} | ${indent}^`;
}
