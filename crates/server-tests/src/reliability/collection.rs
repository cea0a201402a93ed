//! A generated collection with near-duplicates, and the comparison of its index with a scan.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;

/// Creates `docs (id, body, sig)` with an index, and `make_body(id)`: fifty families of documents whose members differ
/// in up to a quarter of sixty words.
pub fn create(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE FUNCTION make_body(id int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
             SELECT string_agg('w' || CASE WHEN abs(hashint4(id * 64 + w)) % 100 < id % 25
                                           THEN id * 100 + w ELSE id % 50 * 1000 + w END,
                               ' ' ORDER BY w)
             FROM generate_series(1, 60) w $$;
         CREATE TABLE docs (id int PRIMARY KEY, body text,
             sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
         CREATE INDEX docs_sig ON docs USING neardup (sig)",
    )?;
    Ok(())
}

/// Further tables, which have all other kinds of objects: values of other forms, indexes on text and on bit strings, a
/// guard, a guard that notes, a constraint, and kept clusters.
pub const OTHERS: &str = "
    CREATE TABLE forms (id int PRIMARY KEY, sig minhash_signature, bits bit(64));
    INSERT INTO forms SELECT i, minhash(repeat('Some words ' || i, i % 4), 1 + i % 5, 'char', 'none',
        1 + i * 5 % 1024, i), simhash('Some words ' || i / 3) FROM generate_series(1, 2000) i;
    CREATE INDEX ON forms USING hash (sig);
    CREATE INDEX forms_bits ON forms USING neardup (bits hamming_ops (distance = 4));
    CREATE INDEX docs_body ON docs USING neardup (body);
    SELECT near_dup_track('docs', 'sig', 0.8);
    CREATE TABLE guarded (id int, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    CREATE INDEX ON guarded USING neardup (sig);
    SELECT near_dup_protect('guarded', 'sig', 0.8);
    INSERT INTO guarded (id, body) SELECT id, body FROM docs d WHERE NOT EXISTS (
        SELECT FROM docs e WHERE e.id < d.id AND near_dup(e.sig, d.sig, 0.8));
    CREATE TABLE noted (id int PRIMARY KEY, body text);
    CREATE INDEX ON noted USING neardup (body);
    SELECT near_dup_protect('noted', 'body', 0.8, action => 'note');
    INSERT INTO noted SELECT id, body FROM docs WHERE id <= 200;
    CREATE TABLE unlike (id int, body text, EXCLUDE USING neardup (near_dup_key(body, 0.8) WITH %));
    INSERT INTO unlike SELECT id, body FROM docs WHERE id <= 50";

/// Returns a digest of everything that is stored in `docs` and [`OTHERS`], and of the results from indexes. The
/// triggers on another server are new ones, so that a tracker does not know how many changes are waiting.
pub fn digest(client: &mut Client) -> Result<String> {
    let digest = "SELECT md5(concat(
        (SELECT string_agg(concat(id, sig::bytea, minhash(body)::bytea), ',' ORDER BY id) FROM docs),
        (SELECT string_agg(concat(id, sig::bytea, bits), ',' ORDER BY sig) FROM forms),
        (SELECT string_agg(concat(a.id, ' ', b.id), ',' ORDER BY a.id, b.id)
         FROM forms a JOIN forms b ON hamming_within(a.bits, b.bits, 4) WHERE a.id < 50),
        (SELECT string_agg(concat(id, sig::bytea), ',' ORDER BY id) FROM guarded),
        (SELECT string_agg(u::text, ',' ORDER BY id) FROM unlike u),
        (SELECT string_agg(concat(key, ' ', near_key, ' ', similarity), ',' ORDER BY key, near_key) FROM noted_near_dups),
        (SELECT string_agg((to_jsonb(t) - 'behind')::text, ',') FROM near_dup_tracked t),
        (SELECT string_agg(c::text, ',' ORDER BY key) FROM docs_clusters c)))";
    Ok(client.query_one(digest, &[])?.get(0))
}

/// Checks that the indexes of [`OTHERS`] are sound, that guard and constraint reject a copy or note it, and that
/// clusters are kept up to date.
pub fn ensure_others_work(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "SELECT near_dup_index_check(index) FROM unnest(ARRAY['docs_body', 'forms_bits']::regclass[]) index",
    )?;
    for table in ["guarded", "unlike"] {
        let again = format!("INSERT INTO {table} (id, body) SELECT -1, body FROM {table} LIMIT 1");
        let outcome = client.batch_execute(&again);
        let code = outcome.as_ref().err().and_then(postgres::Error::code);
        ensure!(
            code == Some(&SqlState::EXCLUSION_VIOLATION),
            "{table} let a copy in: {outcome:?}"
        );
    }
    client.batch_execute("INSERT INTO noted SELECT -1, body FROM noted LIMIT 1")?;
    let noted = "SELECT count(*) FROM noted_near_dups WHERE key = -1";
    let noted: i64 = client.query_one(noted, &[])?.get(0);
    ensure!(noted > 0, "a copy is not noted");
    client.batch_execute(
        "DELETE FROM docs WHERE id % 5 = 0;
         INSERT INTO docs SELECT i, make_body(i) FROM generate_series(-100, -1) i;
         SELECT near_dup_refresh('docs_clusters')",
    )?;
    let wrong = "SELECT count(*) FROM docs_clusters c
        FULL JOIN near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs ORDER BY id', 0.8) d USING (key)
        WHERE c.canonical IS DISTINCT FROM d.cluster";
    let wrong: i64 = client.query_one(wrong, &[])?.get(0);
    ensure!(wrong == 0, "{wrong} rows are kept in other clusters");
    Ok(())
}

/// Adds documents `from` to `to`.
pub fn insert(client: &mut Client, from: i32, to: i32) -> Result<u64> {
    Ok(client.execute(
        "INSERT INTO docs SELECT i, make_body(i) FROM generate_series($1::int, $2::int) i",
        &[&from, &to],
    )?)
}

/// Compares the results of the index for some of the documents with those of a scan, and checks the index's pages.
pub fn ensure_index_equals_scan(client: &mut Client) -> Result<i64> {
    client.batch_execute("SELECT near_dup_index_check('docs_sig')")?;
    // The sum keeps the planner from deriving an index condition for the scan.
    let found = "SELECT q.id AS q, d.id FROM (SELECT * FROM docs ORDER BY hashint4(id) LIMIT 40) q
                 JOIN docs d ON ";
    client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan")?;
    let plan = client.query(&format!("EXPLAIN {found} near_dup(d.sig, q.sig, 0.8)"), &[])?;
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    ensure!(
        plan.iter().any(|line| line.contains("docs_sig")),
        "the index is not used:\n{}",
        plan.join("\n")
    );
    let row = client.query_one(
        &format!(
            "WITH index AS MATERIALIZED ({found} near_dup(d.sig, q.sig, 0.8)),
                  scan AS MATERIALIZED ({found} minhash_sim(d.sig, q.sig) + 0 >= 0.8)
             SELECT (SELECT count(*) FROM scan),
                    (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE index) x),
                    (SELECT count(*) FROM (TABLE index EXCEPT ALL TABLE scan) x)"
        ),
        &[],
    )?;
    client.batch_execute("RESET enable_seqscan; RESET plan_cache_mode")?;
    let (pairs, lost, added): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    ensure!(
        lost == 0 && added == 0,
        "of {pairs} rows of the scan the index lost {lost}, and added {added}"
    );
    Ok(pairs)
}
