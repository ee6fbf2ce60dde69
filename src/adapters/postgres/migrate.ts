// The schema of a shared database: checks whether it fits this program, and upgrades it.
import type { DatabaseConnection } from './connection.ts';
import { DatabaseError } from './connection.ts';
import { MIGRATIONS } from './migrations.ts';

/** The schema formats before and after; 0: there was no schema. */
export interface MigrationResult {
  from: number;
  to: number;
}

interface Format {
  format: number;
  least: number;
}

const KNOWN = MIGRATIONS.length;
const CREATED = /^ *CREATE (?:TABLE|FUNCTION) berth\.(\w+)/gm;

/** The tables and functions of the schema in its newest format. */
const PARTS = [
  'meta',
  ...MIGRATIONS.flatMap(({ sql }) => [...sql.matchAll(CREATED)].map(([, name = '']) => name)),
];

const damaged = (what: string): DatabaseError =>
  new DatabaseError('never', `its schema "berth" is damaged: ${what}; restore the database from a backup`);

/** Reads the tables of the catalog: `to_regclass` remembers what was missing before a wait for the lock. */
async function partsOf(connection: DatabaseConnection): Promise<Set<string>> {
  const rows = await connection.query<{ name: string }>(
    `SELECT p.name FROM pg_catalog.pg_namespace n JOIN (
      SELECT relnamespace AS schema, relname AS name FROM pg_catalog.pg_class
      UNION SELECT pronamespace, proname FROM pg_catalog.pg_proc) p ON p.schema = n.oid
      WHERE n.nspname = 'berth'`,
  );
  return new Set(rows.map(({ name }) => name));
}

async function readFormat(connection: DatabaseConnection): Promise<Format> {
  const parts = await partsOf(connection);
  const missing = PARTS.filter((name) => !parts.has(name));
  // Somebody else may have made the schema, with what is theirs.
  if (missing.length === PARTS.length) return { format: 0, least: 0 };
  if (missing.includes('meta')) throw damaged('meta is missing');
  const [row] = await connection.query<Format>('SELECT format, least FROM berth.meta');
  if (!row) throw damaged('meta is empty');
  if (row.format === KNOWN && missing.length > 0)
    throw damaged(`${missing.join(', ')} ${missing.length > 1 ? 'are' : 'is'} missing`);
  return row;
}

function refuseNewer({ format, least }: Format): void {
  if (least > KNOWN)
    throw new DatabaseError(
      'never',
      `its schema has format ${format}, of a newer Berth: this one knows formats up to ${KNOWN}`,
    );
}

async function apply(connection: DatabaseConnection, from: number): Promise<void> {
  if (from === 0)
    await connection.query(
      'CREATE SCHEMA IF NOT EXISTS berth; CREATE TABLE berth.meta (format int NOT NULL, least int NOT NULL); ' +
        'INSERT INTO berth.meta VALUES (0, 0)',
    );
  for (const { sql } of MIGRATIONS.slice(from)) await connection.query(sql);
  const least = Math.max(...MIGRATIONS.map((step) => step.least));
  await connection.query('UPDATE berth.meta SET format = $1, least = $2', [KNOWN, least]);
}

/**
 * Upgrades the schema to the format of this program; if several do so at once, one of them does the work.
 * `onlyMissing` creates a schema but changes none. Throws a DatabaseError for a damaged schema, for that of a
 * newer Berth and, with `onlyMissing`, for that of an older one.
 */
export async function migrate(
  connection: DatabaseConnection,
  onlyMissing: boolean,
): Promise<MigrationResult> {
  const seen = await readFormat(connection);
  refuseNewer(seen);
  if (seen.format >= KNOWN) return { from: seen.format, to: seen.format };
  if (onlyMissing && seen.format > 0)
    throw new DatabaseError(
      'never',
      `its schema has format ${seen.format}, this Berth needs ${KNOWN}: run \`berth cloud migrate\``,
    );
  return connection.transaction(async () => {
    await connection.query("SELECT pg_advisory_xact_lock(hashtextextended('berth.migrate', 0))");
    const { format } = await readFormat(connection);
    if (format < KNOWN) await apply(connection, format);
    return { from: format, to: Math.max(format, KNOWN) };
  });
}
