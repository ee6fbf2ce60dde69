// Stacks: the shape of a new stack and the answers of the operations, docs/reference.md "Stacks".
import { MAX_PROJECT_NAME, PROJECT_NAME_PATTERN, type StackClaim } from '../protocol/stacks.ts';
import { rssMB } from './answer_fields.ts';
import { cwd, stack } from './registration_fields.ts';
import { isPlainText, objectShape, RequestBody, stringField, validate, z } from './validation.ts';

const PROJECT_RULE = `must be 1 to ${MAX_PROJECT_NAME} of a-z, 0-9 and single -, and begin with neither`;
/** The longest name of a branch or folder. */
const MAX_TEXT = 255;
const TEXT_RULE = `must be a text of 1 to ${MAX_TEXT} characters`;

const project = stringField(
  PROJECT_RULE,
  (value) => value.length <= MAX_PROJECT_NAME && PROJECT_NAME_PATTERN.test(value),
);
const text = stringField(TEXT_RULE, (value) => value !== '' && isPlainText(value, MAX_TEXT));

const NewStackShape = objectShape({
  project,
  path: cwd,
  worktree: text
    .nullable()
    .optional()
    .meta({ description: 'The branch or folder of a linked worktree, for the slug; null: the main one' }),
  branch: text.nullable().optional(),
  name: stack.nullable().optional().meta({ description: 'A chosen name; absent: generated' }),
}).meta({ id: 'StackInput' });

function parseStack(value: unknown): StackClaim {
  const { project: name, path, worktree, branch, ...given } = validate(NewStackShape, value);
  return {
    project: name,
    path,
    worktree: worktree ?? null,
    branch: branch ?? null,
    name: given.name ?? null,
  };
}

/** The body of `register`. */
export type NewStack = z.input<typeof NewStackShape>;
export const NewStack = new RequestBody(NewStackShape, parseStack);

const stackName = z.string().meta({ description: 'Its unique name', example: 'shop--login' });

export type Stack = z.infer<typeof Stack>;
export const Stack = z
  .object({
    name: stackName,
    project: z.string(),
    slug: z.string().nullable().meta({ description: 'null: the stack of the main working tree' }),
    branch: z.string().nullable().meta({ description: 'When it was last brought up' }),
    path: z.string().nullable().meta({ description: 'null: only its services are registered' }),
    gone: z.boolean().meta({ description: 'Its folder no longer exists' }),
    named: z.boolean().meta({ description: 'Its name was chosen, not derived from project and branch' }),
    services: z.int().min(0),
    running: z.int().min(0),
    rssMB,
  })
  .meta({ id: 'Stack' });

export const StackList = z.object({ stacks: z.array(Stack) });

export const StackRemoved = z.object({
  removed: z.literal(true),
  name: stackName,
  services: z.array(z.string()).meta({ description: 'The names of the services that were removed with it' }),
});
