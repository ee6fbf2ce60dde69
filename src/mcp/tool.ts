// What a tool is, and what it works with. docs/reference.md "MCP".
import { z } from '../adapters/zod.ts';
import type { Client } from '../client/create_client.ts';

/** The caller of a tool: its access, and where it works. */
export interface Workplace {
  /** Calls the API with the token of the caller, and so with the rights of the caller. */
  readonly client: Client;
  /** The folder that the caller works in; null: unknown. */
  readonly folder: string | null;
  /** The environment that what the caller registers begins with; undefined: the daemon's. */
  readonly baseEnv: Readonly<Record<string, string>> | undefined;
  /** Does what `berth up` does in a folder; null: unavailable. Fails if it brings nothing up. */
  readonly bringUp: ((folder: string, signal: AbortSignal) => Promise<BroughtUp>) | null;
}

/** The result of `berth up`. */
export interface BroughtUp {
  /** The services that it has brought up. */
  readonly names: readonly string[];
  /** Why the others did not come up, or did not stay up, by name. */
  readonly errors: ReadonlyMap<string, string>;
}

/** One call of a tool. */
export interface ToolCall extends Workplace {
  /** Aborted when the caller gives up. */
  readonly signal: AbortSignal;
}

/**
 * What a call does to existing things: nothing, a change that can be undone, or one that ends or replaces
 * them.
 */
export type ToolEffect = 'reads' | 'changes' | 'ends';

/** A tool as data: `I` and `O` are its input and its structured answer. */
export interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** For the model that chooses among tools: what it does, and when to use another. */
  readonly description: string;
  readonly effect: ToolEffect;
  /** A second call with the same input changes nothing more. */
  readonly isRepeatable: boolean;
  /** The ids of the operations of the API that it calls. */
  readonly operations: readonly string[];
  readonly input: I;
  readonly output: O;
  readonly run: (call: ToolCall, input: z.infer<I>) => Promise<z.infer<O>>;
  /** The result in a few lines. */
  readonly text: (answer: z.infer<O>, input: z.infer<I>) => string;
  /** For a tool that may take long: what it is waiting for, for its progress messages. */
  readonly progress?: (call: ToolCall, input: z.infer<I>) => Promise<string>;
}

/** The structured answer of a call, with its text. */
export interface ToolAnswer {
  readonly text: string;
  readonly content: Record<string, unknown>;
}

/** A call whose input has been checked. */
export interface CheckedCall {
  /** Rejects with a BerthError. */
  readonly run: (call: ToolCall) => Promise<ToolAnswer>;
  /** null: the call is short. */
  readonly progress: ((call: ToolCall) => Promise<string>) | null;
}

/** A tool without the types of its input and answer. */
export interface Tool
  extends Pick<
    ToolSpec<z.ZodObject, z.ZodObject>,
    'name' | 'title' | 'description' | 'effect' | 'isRepeatable' | 'operations' | 'input' | 'output'
  > {
  /** The call with this input, or the faults of the input. */
  check(input: unknown): CheckedCall | { faults: readonly string[] };
}

const faultText = ({ path, message }: z.core.$ZodIssue): string =>
  path.length > 0 ? `${path.map(String).join('.')}: ${message}` : message;

/** Creates a tool from its spec; `run` gets typed input. */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(spec: ToolSpec<I, O>): Tool {
  const { run, text, progress, ...data } = spec;
  return {
    ...data,
    check: (given) => {
      const checked = spec.input.safeParse(given ?? {});
      if (!checked.success) return { faults: checked.error.issues.map(faultText) };
      const input = checked.data;
      return {
        run: async (call) => {
          const answer = await run(call, input);
          return { text: text(answer, input), content: answer };
        },
        progress: progress ? (call) => progress(call, input) : null,
      };
    },
  };
}

/** The fields of an input; anything else is refused. */
export const inputShape = <S extends z.core.$ZodLooseShape>(fields: S) => z.strictObject(fields);
