// API tokens and grants: the shapes of new tokens and new grants, and the answers of the operations.
// docs/reference.md "API tokens", "Roles and grants".
import { ROLES } from '../protocol/grants.ts';
import { selectorFault } from '../protocol/labels.ts';
import { isNamespace } from '../protocol/names.ts';
import { type Grantee, type GrantInput, TOKEN_NAME_PATTERN } from '../protocol/principals.ts';
import { id, utcTimeShape } from './answer_fields.ts';
import { objectShape, patternField, RequestBody, stringField, validate, z } from './validation.ts';

const nameField = patternField('must be 1 to 63 of a-z, 0-9, ., _ and -', TOKEN_NAME_PATTERN);

const TokenShape = objectShape({
  name: nameField,
  expires_at: z.iso
    .datetime({ offset: true, error: 'must be a time such as 2026-12-24T18:00:00+01:00' })
    .describe('From then on it is refused; default: never')
    .nullable()
    .optional(),
}).meta({ id: 'TokenInput' });

/** A new token as a client requests it. */
export type NewToken = z.input<typeof TokenShape>;
export const NewToken = new RequestBody(TokenShape, (value): { name: string; expiresAt: number | null } => {
  const { name, expires_at: expiresAt } = validate(TokenShape, value);
  return { name, expiresAt: expiresAt ? Date.parse(expiresAt) : null };
});

const personField = patternField(
  'must be 1 to 200 printable characters without blanks',
  /^[\x21-\x7e]{1,200}$/,
);

const GrantShape = objectShape({
  token: nameField.optional().describe('The name of the token'),
  user: personField.optional().describe('In place of it: a person, as the issuer names them'),
  group: personField.optional().describe('In place of it: a group of the issuer'),
  role: z.enum(ROLES, `must be one of ${ROLES.join(', ')}`),
  cluster_id: stringField('must be the id of a cluster').nullable().optional().describe('Default: all'),
  namespace: stringField('must be the name of a namespace', isNamespace)
    .nullable()
    .optional()
    .describe('Default: all'),
  selector: z
    .string('must be a label selector, such as app=web')
    .nullable()
    .optional()
    .describe('A label selector, as in Kubernetes; default: whatever the labels'),
}).meta({ id: 'GrantInput' });

const GRANTEES = ['token', 'user', 'group'] as const;

function parseGrant(value: unknown): GrantInput {
  const given = validate(GrantShape, value);
  const { role, cluster_id: clusterId = null, namespace = null, selector: labels = null } = given;
  const fault = labels === null ? null : selectorFault(labels);
  const grantees = GRANTEES.flatMap((kind): Grantee[] => {
    const name = given[kind];
    return name === undefined ? [] : [{ kind, name }];
  });
  const faults = [
    ...(fault === null ? [] : [{ path: 'selector', message: `selector ${fault}` }]),
    ...(grantees.length === 1
      ? []
      : [{ path: 'token', message: 'one of token, user and group must be given' }]),
  ];
  validate(GrantShape, value, faults);
  // `validate` has thrown unless there is exactly one grantee.
  return { to: grantees[0] as Grantee, role, clusterId, namespace, labels };
}

/** A new grant as a client requests it. */
export type NewGrant = z.input<typeof GrantShape>;
export const NewGrant = new RequestBody(GrantShape, parseGrant);

const token = {
  id,
  name: z.string(),
  created_at: utcTimeShape,
  created_by: z.string().describe('As who of the audit log'),
  expires_at: utcTimeShape.nullable(),
  last_used_at: utcTimeShape.nullable().describe('At most a few minutes late after a restart'),
};

export type ApiToken = z.infer<typeof ApiToken>;
export const ApiToken = z.object(token).meta({ id: 'ApiToken' });
export const TokenList = z.array(ApiToken);
export const TokenAdded = z
  .object({ ...token, token: z.string().describe('Its text, told here and nowhere else') })
  .meta({ id: 'TokenAdded' });
export const TokenRevoked = z.object({ removed: z.literal(true), name: z.string() });

export type Grant = z.infer<typeof Grant>;
export const Grant = z
  .object({
    id,
    token: z.string().nullable().describe('The name of the token; null: it is for a user or a group'),
    user: z.string().nullable(),
    group: z.string().nullable(),
    role: z.enum(ROLES),
    cluster_id: id.nullable().describe('null: all clusters'),
    cluster: z.string().nullable().describe('Its name'),
    namespace: z.string().nullable().describe('null: all namespaces'),
    selector: z.string().nullable(),
    created_at: utcTimeShape,
    created_by: z.string(),
  })
  .meta({ id: 'Grant' });
export const GrantList = z.array(Grant);
export const GrantRemoved = z.object({ removed: z.literal(true), id });
