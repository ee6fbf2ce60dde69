// docs/reference.md "MCP tools": the table of tools against the contract, the API and what clients can read.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALL_OPERATIONS } from '../../src/api/operations.ts';
import { listedTools, TOOLS } from '../../src/mcp/tool_table.ts';
import { must } from '../kit/must.ts';
import { ROOT } from '../tidy/source_tree.ts';

const operations = new Map(ALL_OPERATIONS.map((operation) => [operation.id, operation]));

describe('the table of tools', () => {
  it('is the same as in the reference', () => {
    const reference = readFileSync(join(ROOT, 'docs', 'reference.md'), 'utf8');
    const section = must(reference.split('### MCP tools\n')[1]).split('\n### ')[0] ?? '';
    const listed = [...section.matchAll(/^\| `(\w+)` \| (.*?) \|/gm)].map(([, name, ids = '']) => [
      name,
      [...ids.matchAll(/`(\w+)`/g)].map(([, id]) => id),
    ]);
    expect(listed).toEqual(TOOLS.map((tool) => [tool.name, tool.operations]));
  });

  it('is the same as in docs/mcp.md, with the effect of each tool', () => {
    const page = readFileSync(join(ROOT, 'docs', 'mcp.md'), 'utf8');
    const section = must(page.split('## Tools\n')[1]).split('\n## ')[0] ?? '';
    const listed = [...section.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, effect]) => [
      name,
      effect,
    ]);
    expect(listed).toEqual(TOOLS.map(({ name, effect }) => [name, effect]));
  });

  it('names existing operations, and only GET for tools that read', () => {
    for (const { name, effect, operations: ids } of TOOLS)
      for (const id of ids) {
        const operation = must(operations.get(id));
        if (effect === 'reads') expect(operation.method, `${name}: ${id}`).toBe('GET');
      }
  });

  it('is listed with self-contained schemas', () => {
    for (const { name, inputSchema, outputSchema, annotations } of listedTools()) {
      const text = JSON.stringify([inputSchema, outputSchema]);
      expect(text, name).not.toContain('$ref');
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(outputSchema).toMatchObject({ type: 'object' });
      expect(annotations.readOnlyHint && annotations.destructiveHint, name).toBe(false);
      for (const [field, schema] of Object.entries(inputSchema['properties'] ?? {}))
        expect(schema, `${name}.${field}`).toHaveProperty('description');
    }
    // Clients put them into every conversation.
    const forModels = listedTools().map(({ outputSchema: _, ...rest }) => rest);
    expect(JSON.stringify(forModels).length).toBeLessThan(24_000);
  });

  it('has checks that report every fault of an input', () => {
    const tool = must(TOOLS.find(({ name }) => name === 'register'));
    const checked = tool.check({ name: '', port: 'x', foo: 1 });
    expect('faults' in checked && checked.faults.map((fault) => fault.split(':')[0])).toEqual([
      'name',
      'cmd',
      'port',
      'Unrecognized key',
    ]);
    expect(tool.check({ name: 'web', cmd: 'x' })).toHaveProperty('run');
  });
});
