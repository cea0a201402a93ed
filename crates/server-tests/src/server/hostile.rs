//! Calls every function that runs a query or names an object as a role that can only create temporary objects.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// Types with the names of the types that the functions look for, with values that are not pointers to them, and tables
/// of such values.
const TRAPS: &str = "
    CREATE DOMAIN pg_temp.minhash_signature AS bigint;
    CREATE DOMAIN pg_temp._ball AS bigint;
    CREATE DOMAIN pg_temp.text AS bigint;
    CREATE DOMAIN pg_temp.int4 AS bigint;
    CREATE DOMAIN pg_temp.int8 AS pg_catalog.text;
    CREATE DOMAIN pg_temp.varbit AS bigint;
    CREATE DOMAIN pg_temp.\"bit\" AS bigint;
    CREATE TEMP TABLE z (k pg_temp.int4, s pg_temp.minhash_signature, d pg_temp.text,
        b pg_temp.varbit, c pg_temp.\"bit\", n pg_temp.int8);
    CREATE INDEX z_k ON z (k);
    INSERT INTO z VALUES (16, 16, 16, 16, 16, '16'), (4096, 4096, 4096, 4096, 4096, '4096')";

/// Calls of each function with values of these types; all are rejected.
const REJECTED: &[(&str, &str, SqlState)] = &[
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT 1, s FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT n, minhash(''a'') FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT 1, minhash(''a''), d FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::pg_catalog.int8, 'SELECT n, minhash(''a'') FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT 1, d FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_join",
        "SELECT near_dup_join(NULL::int, 'SELECT 1, minhash(''a'')', 'SELECT 1, s FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT 1, d FROM z', 0.5, measure => 'containment')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_join",
        "SELECT near_dup_join(NULL::int, 'SELECT 1, ''a''::pg_catalog.text', 'SELECT k, n FROM z', 0.5, measure => 'containment')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "star_clusters",
        "SELECT star_clusters(NULL::int, 'SELECT k FROM z', 'SELECT 1, 2, 0.5::pg_catalog.float8')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "star_clusters",
        "SELECT star_clusters(NULL::int, 'SELECT 1', 'SELECT 1, 2, k FROM z')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_clusters",
        "SELECT near_dup_clusters(NULL::int, 'SELECT 1, s FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT 1, b FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_pairs",
        "SELECT near_dup_pairs(NULL::int, 'SELECT 1, c FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "connected_components",
        "SELECT connected_components(NULL::pg_catalog.text, 'SELECT d, d FROM z')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_distinct",
        "SELECT near_dup_distinct(NULL::int, 'SELECT 1, s FROM z', 0.5)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "copied_passages",
        "SELECT copied_passages(NULL::int, 'SELECT 1, d FROM z')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "frequent_passages",
        "SELECT frequent_passages('SELECT d FROM z')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "common_shingles",
        "SELECT common_shingles('SELECT d FROM z', 2)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_sample_pairs",
        "SELECT near_dup_sample_pairs(NULL::int, 'SELECT 1, d FROM z')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_guard",
        "CREATE TRIGGER guard AFTER INSERT ON z FOR EACH ROW
             EXECUTE FUNCTION near_dup_guard('s', '0.8');
         INSERT INTO z VALUES (1, 1, 1, 1, 1, '1')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_protect",
        "SELECT near_dup_protect('z', 's', 0.8)",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_protect",
        "SELECT near_dup_protect('z', 'c', 3, trigger_name => 'guard')",
        SqlState::DATATYPE_MISMATCH,
    ),
    (
        "near_dup_protect",
        "CREATE TEMP TABLE noted (id pg_catalog.int4 PRIMARY KEY, body pg_catalog.text);
         CREATE INDEX ON noted USING neardup (body);
         SELECT near_dup_protect('noted', 'body', 0.8, action => 'note')",
        SqlState::FEATURE_NOT_SUPPORTED,
    ),
    (
        "near_dup_unprotect",
        "SELECT near_dup_unprotect('z')",
        SqlState::UNDEFINED_OBJECT,
    ),
    (
        "near_dup_track",
        "SELECT near_dup_track('z', 's')",
        SqlState::FEATURE_NOT_SUPPORTED,
    ),
    (
        "near_dup_refresh",
        "SELECT near_dup_refresh('z')",
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    ),
    (
        "near_dup_untrack",
        "SELECT near_dup_untrack('z')",
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    ),
    (
        "near_dup_track",
        "CREATE TRIGGER note AFTER INSERT ON z FOR EACH ROW EXECUTE FUNCTION near_dup_track('s', '0.8');
         INSERT INTO z VALUES (1, 1, 1, 1, 1, '1')",
        SqlState::E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
    ),
    (
        "near_dup_index_stats",
        "SELECT near_dup_index_stats('z_k')",
        SqlState::WRONG_OBJECT_TYPE,
    ),
    (
        "near_dup_index_check",
        "SELECT near_dup_index_check('z_k')",
        SqlState::WRONG_OBJECT_TYPE,
    ),
];

/// Calls that read a table without the required privilege.
const READS: &[&str] = &[
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, sig FROM private.docs', 0.5)",
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT 1, md5(''a'')', 0.5, exceptions => 'SELECT id, id FROM private.docs')",
    "SELECT count(*) FROM near_dup_join(NULL::int, 'SELECT 1, minhash(''a'')', 'SELECT id, sig FROM private.docs', 0.5)",
    "SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM private.docs', 0.5)",
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, simhash(body) FROM private.docs', 3)",
    "SELECT count(*) FROM connected_components(NULL::int, 'SELECT id, id FROM private.docs')",
    "SELECT count(*) FROM near_dup_distinct(NULL::int, 'SELECT id, body FROM private.docs', 0.5)",
    "SELECT count(*) FROM copied_passages(NULL::int, 'SELECT id, body FROM private.docs')",
    "SELECT count(*) FROM frequent_passages('SELECT body FROM private.docs')",
    "SELECT count(*) FROM common_shingles('SELECT body FROM private.docs', 2)",
    "SELECT count(*) FROM near_dup_protect(DOCS, 'sig', 0.8)",
    "SELECT count(*) FROM near_dup_track(DOCS, 'sig')",
    "SELECT count(*) FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM private.docs')",
    "SELECT count(*) FROM near_dup_index_stats(INDEX)",
    "SELECT count(*) FROM near_dup_index_check(INDEX)",
];

/// Functions that a user can call and whose result depends on more than their arguments: functions that run a query,
/// name an object, or belong to a trigger.
const VOLATILE: &str = "SELECT DISTINCT p.proname::text FROM pg_proc p
    JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid
    WHERE e.extname = 'pg_neardup' AND p.provolatile = 'v'
        AND NOT 'internal'::regtype = ANY (p.proargtypes)";

/// Checks that types are identified by themselves and not by their names, and that queries run with the caller's
/// rights.
pub fn role(server: &Server) -> Result<Outcome> {
    let database = Database::create(&server.main, "hostile_role", "")?;
    let name = &database.name;
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "CREATE SCHEMA ext; CREATE EXTENSION pg_neardup SCHEMA ext; SET search_path = ext;
         CREATE SCHEMA private; CREATE TABLE private.docs (id int PRIMARY KEY, body text, sig minhash_signature);
         INSERT INTO private.docs VALUES (1, 'a secret', minhash('a secret'));
         CREATE INDEX docs_sig ON private.docs USING neardup (sig);
         REVOKE ALL ON DATABASE {name} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC;
         DROP ROLE IF EXISTS {name}; CREATE ROLE {name};
         GRANT TEMP ON DATABASE {name} TO {name}; GRANT USAGE ON SCHEMA ext TO {name}"
    ))?;
    for row in client.query(VOLATILE, &[])? {
        let function: String = row.get(0);
        let is_tried = REJECTED.iter().any(|(tried, ..)| *tried == function);
        ensure!(is_tried, "{function} is not tried by a hostile role");
    }
    let oids = "SELECT 'private.docs'::regclass::oid, 'private.docs_sig'::regclass::oid";
    let row = client.query_one(oids, &[])?;
    let (docs, index): (u32, u32) = (row.get(0), row.get(1));
    client.batch_execute(&format!(
        "SET ROLE {name}; SET search_path = pg_temp, ext; {TRAPS}"
    ))?;
    for (_, call, code) in REJECTED {
        expect(&mut client, call, code)?;
    }
    for call in READS {
        let call = call.replace("DOCS", &docs.to_string());
        let call = call.replace("INDEX", &index.to_string());
        expect(&mut client, &call, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    client.batch_execute(&format!(
        "RESET ROLE; DROP OWNED BY {name}; DROP ROLE {name}"
    ))?;
    Ok(Outcome::Passed)
}

fn expect(client: &mut Client, call: &str, code: &SqlState) -> Result<()> {
    let error = client.batch_execute(call).err();
    let error = error.with_context(|| format!("{call} is answered"))?;
    ensure!(error.code() == Some(code), "{call}: {error:?}");
    Ok(())
}
