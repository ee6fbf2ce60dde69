// The schema of a shared database, step by step. A released step is never changed; a later step changes its
// result. Function names contain a number, so that two versions of Berth can run side by side.

interface Migration {
  /** The lowest format a program must support to work with the schema after this step. */
  least: number;
  sql: string;
}

/** A table of rows, each the JSON of a Berth record. Text, because jsonb does not allow U+0000. */
const table = (name: string): string => `
  CREATE TABLE berth.${name} (
    id text COLLATE "C" PRIMARY KEY,
    cluster_id text COLLATE "C",
    record text NOT NULL
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);`;

const TABLES = [
  'workloads',
  'watches',
  'outbox',
  'savings',
  'tethers',
  'operations',
  'policies',
  'tokens',
  'grants',
];
/** Tables whose rows belong to a cluster, and are removed with it. */
const OF_CLUSTERS = ['workloads', 'watches', 'savings'];

const FIRST = `
CREATE TABLE berth.vault (one boolean PRIMARY KEY DEFAULT true CHECK (one), canary text NOT NULL);

-- Who runs the cloud part. One row; the token grows with each holder and fences the writes of earlier ones.
CREATE TABLE berth.lease (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  member text, host text, address text, lock_key bigint,
  token bigint NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO berth.lease DEFAULT VALUES;

CREATE TABLE berth.clusters (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL UNIQUE,
  in_cluster boolean NOT NULL,
  record text NOT NULL
);
CREATE UNIQUE INDEX clusters_one_in_cluster ON berth.clusters (in_cluster) WHERE in_cluster;
${TABLES.map(table).join('\n')}
${OF_CLUSTERS.map((name) => `CREATE INDEX ${name}_cluster ON berth.${name} (cluster_id, id);`).join('\n')}

-- The journal of cloud events, numbered by the holder of the lease.
CREATE TABLE berth.events (
  id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), line text NOT NULL
);
CREATE INDEX events_at ON berth.events (at);

-- Renews the lease of p_member, or takes it where nobody has it.
CREATE FUNCTION berth.beat_1(p_member text, p_host text, p_address text, p_key bigint, p_ttl interval,
  p_grace interval)
RETURNS TABLE (held boolean, fence text, holder text, address text, left_ms double precision) LANGUAGE plpgsql AS $$
DECLARE l berth.lease;
BEGIN
  UPDATE berth.lease SET expires_at = clock_timestamp() + p_ttl WHERE member = p_member RETURNING * INTO l;
  IF NOT FOUND THEN
    SELECT * INTO l FROM berth.lease;
    -- Whose session has ended has a little time to come back: a hint, not a proof.
    IF l.expires_at > clock_timestamp() + p_grace AND pg_try_advisory_xact_lock_shared(l.lock_key) THEN
      UPDATE berth.lease SET expires_at = least(expires_at, clock_timestamp() + p_grace)
        WHERE token = l.token AND member IS NOT NULL RETURNING * INTO l;
    END IF;
    IF l.expires_at <= clock_timestamp() THEN
      -- Waits for the writes of the former holder that have passed their fence.
      PERFORM 1 FROM berth.lease FOR UPDATE;
      UPDATE berth.lease SET member = p_member, host = p_host, address = p_address, lock_key = p_key, token = token + 1,
        expires_at = clock_timestamp() + p_ttl WHERE expires_at <= clock_timestamp();
      SELECT * INTO l FROM berth.lease;
    END IF;
  END IF;
  RETURN QUERY SELECT l.member = p_member, l.token::text, l.host, l.address,
    (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000)::double precision;
END $$;

CREATE FUNCTION berth.release_1(p_member text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE berth.lease SET member = NULL, expires_at = '-infinity' WHERE member = p_member;
  IF FOUND THEN PERFORM pg_notify('berth_lease', ''); END IF;
END $$;

-- Called first by every function that writes. Taking the lease waits until they have ended.
CREATE FUNCTION berth.fence_1(p_member text, p_token bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM berth.lease WHERE member = p_member AND token = p_token FOR KEY SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'the lease is no longer held' USING ERRCODE = 'BF001'; END IF;
END $$;

-- p: {"put": {table: [[id, cluster, record]]}, "remove": {table: [id]}}. What belongs to a cluster that was
-- removed meanwhile is left out.
CREATE FUNCTION berth.write_1(p_member text, p_token bigint, p jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t text; rows jsonb;
BEGIN
  PERFORM berth.fence_1(p_member, p_token);
  FOR t, rows IN SELECT * FROM jsonb_each(p->'remove') LOOP
    EXECUTE format('DELETE FROM berth.%I WHERE id IN (SELECT jsonb_array_elements_text($1))', t) USING rows;
  END LOOP;
  FOR t, rows IN SELECT * FROM jsonb_each(p->'put') LOOP
    EXECUTE format('INSERT INTO berth.%I (id, cluster_id, record) SELECT x->>0, x->>1, x->>2 '
      'FROM jsonb_array_elements($1) x WHERE x->>1 IS NULL OR x->>1 IN (SELECT id FROM berth.clusters) '
      'ON CONFLICT (id) DO UPDATE SET record = excluded.record', t) USING rows;
  END LOOP;
END $$;

CREATE FUNCTION berth.append_events_1(p_member text, p_token bigint, p_first bigint, p_lines jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM berth.fence_1(p_member, p_token);
  -- Asked again after an answer that was lost, they are there, and nobody has seen them.
  DELETE FROM berth.events WHERE id >= p_first;
  INSERT INTO berth.events (id, line)
    SELECT p_first + n - 1, line FROM jsonb_array_elements_text(p_lines) WITH ORDINALITY AS x (line, n);
END $$;

CREATE FUNCTION berth.prune_events_1(p_member text, p_token bigint, p_age interval)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM berth.fence_1(p_member, p_token);
  -- Never the newest one, whose number the next one follows.
  DELETE FROM berth.events WHERE id IN (SELECT id FROM berth.events
    WHERE at < clock_timestamp() - p_age AND id < (SELECT max(id) FROM berth.events) ORDER BY id LIMIT 5000);
END $$;

CREATE FUNCTION berth.add_cluster_1(p_member text, p_token bigint, p_id text, p_name text,
  p_in_cluster boolean, p_record text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM berth.fence_1(p_member, p_token);
  INSERT INTO berth.clusters VALUES (p_id, p_name, p_in_cluster, p_record) ON CONFLICT DO NOTHING;
  -- Asked again after an answer that was lost, it is there.
  RETURN EXISTS (SELECT 1 FROM berth.clusters WHERE id = p_id);
END $$;

CREATE FUNCTION berth.save_cluster_1(p_member text, p_token bigint, p_id text, p_name text,
  p_in_cluster boolean, p_record text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM berth.fence_1(p_member, p_token);
  IF EXISTS (SELECT 1 FROM berth.clusters WHERE name = p_name AND id <> p_id) THEN RETURN false; END IF;
  UPDATE berth.clusters SET name = p_name, in_cluster = p_in_cluster, record = p_record WHERE id = p_id;
  RETURN true;
END $$;

CREATE FUNCTION berth.remove_cluster_1(p_member text, p_token bigint, p_id text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM berth.fence_1(p_member, p_token);
  DELETE FROM berth.clusters WHERE id = p_id;
${OF_CLUSTERS.map((name) => `  DELETE FROM berth.${name} WHERE cluster_id = p_id;`).join('\n')}
END $$;
`;

/** The format of a schema is the number of steps applied to it. */
export const MIGRATIONS: readonly Migration[] = [{ least: 1, sql: FIRST }];
