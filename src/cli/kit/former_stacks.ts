// The stacks that a project file had before its project was renamed: docs/reference.md "Stacks".
import { dirname } from 'node:path';
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { countText } from '../../presentation/format.ts';
import { isHook } from '../../protocol/hooks.ts';
import type { CommandContext } from './context.ts';
import { projectFileOf } from './project_file.ts';

/**
 * Names the stacks with services of `file` that are not `stack`, the stack of the file's folder, and what
 * removes them. Does nothing when a person has chosen `stack`.
 */
export async function noteFormerStacks(
  context: CommandContext,
  client: Client,
  { file, stack }: { file: string; stack: string | null },
  registered: readonly ServiceDetail[],
): Promise<void> {
  const others = registered.filter(
    (one) => projectFileOf(one.labels) === file && one.stack !== stack && !isHook(one.service),
  );
  if (others.length === 0) return;
  const stacks = (await client.stacks()).filter(({ named, path }) => !named && path === dirname(file));
  if (!stacks.some(({ name }) => name === stack)) return;
  for (const { name } of stacks) {
    const { length } = others.filter((one) => one.stack === name);
    const what = `${countText(length, 'service')} of this project under its previous name`;
    if (length > 0) context.out.note(`${name} still has ${what}; \`berth rm --stack ${name}\` removes it.`);
  }
}
