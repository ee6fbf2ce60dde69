// Every tool, in the order in which clients see them: docs/reference.md "MCP tools".
import { z } from '../adapters/zod.ts';
import type { Tool } from './tool.ts';
import { AGENT_TOOLS } from './tools/agents.ts';
import { CLOUD_TOOLS } from './tools/cloud.ts';
import { SERVICE_TOOLS } from './tools/services.ts';
import { STACK_TOOLS } from './tools/stacks.ts';
import { WATCHING_TOOLS } from './tools/watching.ts';

export const TOOLS: readonly Tool[] = [
  ...SERVICE_TOOLS,
  ...WATCHING_TOOLS,
  ...STACK_TOOLS,
  ...AGENT_TOOLS,
  ...CLOUD_TOOLS,
];

const TOOLS_BY_NAME: ReadonlyMap<string, Tool> = new Map(TOOLS.map((tool) => [tool.name, tool]));

export const toolNamed = (name: string): Tool | undefined => TOOLS_BY_NAME.get(name);

type JsonSchema = { type: 'object' } & Record<string, unknown>;

/**
 * The JSON Schema of an input or an answer, in itself: some clients resolve no references, so what has a name
 * is written where it is used.
 */
function schemaOf(shape: z.ZodObject, io: 'input' | 'output'): JsonSchema {
  const unnamed = z.registry<Record<string, unknown>>();
  const { $schema: _dialect, ...schema } = z.toJSONSchema(shape, {
    io,
    metadata: unnamed,
    override: ({ zodSchema, jsonSchema }) => {
      const { description, example } = z.globalRegistry.get(zodSchema) ?? {};
      if (description !== undefined) jsonSchema.description = description;
      if (example !== undefined) jsonSchema['examples'] = [example];
    },
  });
  return { ...schema, type: 'object' };
}

/** A tool as clients see it. */
const listedTool = ({ name, title, description, effect, isRepeatable, input, output }: Tool) => ({
  name,
  title,
  description,
  inputSchema: schemaOf(input, 'input'),
  outputSchema: schemaOf(output, 'output'),
  annotations: {
    title,
    readOnlyHint: effect === 'reads',
    destructiveHint: effect === 'ends',
    idempotentHint: isRepeatable,
    openWorldHint: false,
  },
});

let listed: ReturnType<typeof listedTool>[] | null = null;

/** Every tool as clients see it. The schemas are made once. */
export function listedTools(): ReturnType<typeof listedTool>[] {
  listed ??= TOOLS.map(listedTool);
  return listed;
}
