//! Names outside ASCII, in a database whose encoding is not UTF-8.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// A schema, a table, its columns and an index whose names LATIN1 can represent.
const OBJECTS: &str = r#"
    CREATE EXTENSION pg_neardup;
    CREATE SCHEMA "Bücher";
    CREATE TABLE "Bücher"."Größe" ("Schlüssel" int PRIMARY KEY, "Text é" text, "Maß" int,
        "Prägung" minhash_signature, "Länge, Breite" int);
    INSERT INTO "Bücher"."Größe" SELECT i, 'some words of text ' || i % 7, i % 2 FROM generate_series(1, 20) i;
"#;

/// Calls of functions that take a relation or a column, in an order in which each succeeds.
const CALLS: &[&str] = &[
    r#"UPDATE "Bücher"."Größe" SET "Prägung" = minhash("Text é")"#,
    r#"CREATE INDEX "Größe_Prägung" ON "Bücher"."Größe" USING neardup ("Maß", "Prägung")"#,
    r#"SELECT near_dup_index_stats('"Bücher"."Größe_Prägung"')"#,
    r#"SELECT near_dup_index_check('"Bücher"."Größe_Prägung"')"#,
    r#"SELECT near_dup_track('"Bücher"."Größe"', 'Prägung', 0.8, '"Maß" DESC', 'Häufung', '{Maß}')"#,
    r#"UPDATE "Bücher"."Größe" SET "Text é" = 'é', "Prägung" = minhash('é') WHERE "Maß" = 1"#,
    r#"SELECT near_dup_refresh('"Bücher"."Häufung"')"#,
    r#"SELECT near_dup_refresh('"Bücher"."Häufung"', true)"#,
    r#"SELECT near_dup_untrack('"Bücher"."Häufung"')"#,
    r#"CREATE INDEX ON "Bücher"."Größe" USING neardup ("Maß", "Länge, Breite", "Prägung")"#,
    r#"SELECT near_dup_track('"Bücher"."Größe"', 'Prägung', scope => '{Maß,"Länge, Breite"}')"#,
    r#"SELECT near_dup_untrack('"Bücher"."Größe_clusters"')"#,
    r#"CREATE INDEX "Größe_Text" ON "Bücher"."Größe" USING neardup ("Text é")"#,
    r#"SELECT near_dup_track('"Bücher"."Größe"', 'Text é', 0.8, 'length("Text é")', 'Texthäufung', condition => '"Text é" <> ''ö''')"#,
    r#"UPDATE "Bücher"."Größe" SET "Text é" = "Text é" || ' ÄÖÜ' WHERE "Maß" = 1"#,
    r#"SELECT near_dup_refresh('"Bücher"."Texthäufung"', true)"#,
    r#"SELECT near_dup_untrack('"Bücher"."Texthäufung"')"#,
    r#"SELECT near_dup_protect('"Bücher"."Größe"', 'Prägung', 0.9, scope => '{Maß,"Länge, Breite"}', trigger_name => 'Wächter ß', action => 'note', notes => 'Notizen ß', key => 'Maß')"#,
    r#"SELECT near_dup_unprotect('"Bücher"."Größe"', 'Wächter ß')"#,
    r#"SELECT near_dup_protect('"Bücher"."Größe"', 'Prägung', 0.9, scope => '{Maß,"Länge, Breite"}', trigger_name => 'Wächter ä')"#,
];

/// Calls that are rejected or print a message, and the part of the message that must be legible.
const REPORTS: &[(&str, &str)] = &[
    (
        r#"SELECT near_dup_protect('"Bücher"."Größe"', 'Prägung', 0.1, trigger_name => 'ö')"#,
        r#"CREATE INDEX ON "Bücher"."Größe" USING neardup ("Prägung" "#,
    ),
    (
        r#"SELECT near_dup_protect('"Bücher"."Größe"', 'Prägüng', 0.8, trigger_name => 'ö')"#,
        r#"table "Bücher"."Größe" has no column "Prägüng""#,
    ),
    (
        r#"SELECT near_dup_track('"Bücher"."Größe"', 'Prägung', 0.1, clusters => 'ö')"#,
        r#"CREATE INDEX ON "Bücher"."Größe" USING neardup ("Prägung" "#,
    ),
    (
        r#"SELECT near_dup_refresh('"Bücher"."Größe"')"#,
        r#""Bücher"."Größe" is not maintained"#,
    ),
    (
        r#"SELECT near_dup_index_check('"Bücher"."Größe"')"#,
        r#""Größe" is not a neardup index"#,
    ),
    (
        r#"INSERT INTO "Bücher"."Größe" SELECT 99, "Text é", 1, "Prägung" FROM "Bücher"."Größe" WHERE "Maß" = 1 LIMIT 1"#,
        r#"rejected by "Wächter ä" on table "Größe""#,
    ),
    (
        r#"INSERT INTO "Bücher"."Größe" SELECT 99, "Text é", 1, "Prägung" FROM "Bücher"."Größe" WHERE "Maß" = 1 LIMIT 1"#,
        "similar to row (\"Schlüssel\")=(",
    ),
    (
        r#"SELECT near_dup_pairs(NULL::int, 'SELECT "Schlüssel", "Text" FROM "Bücher"."Größe"', 0.8)"#,
        r#"the column "Größe.Text é""#,
    ),
    (
        r#"SELECT near_dup_pairs(NULL::int, 'SELECT "Schlüssel", "Téxt" FROM "Bücher"."Größe"', 0.8)"#,
        r#"column "Téxt" does not exist"#,
    ),
    // LATIN1 has no letter with a stroke through it.
    (r#"SELECT minhash('Øresund', unit => 'ö')"#, "unit"),
];

/// Checks that every function that takes a relation or a column works in a LATIN1 database with names outside ASCII,
/// and that the names in its messages are readable.
pub fn outside_ascii(server: &Server) -> Result<Outcome> {
    let options = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    let database = Database::create(&server.main, "names", options)?;
    let mut client = database.connect()?;
    client.batch_execute("SET client_encoding = 'UTF8'")?;
    client.batch_execute(OBJECTS)?;
    for call in CALLS {
        client
            .batch_execute(call)
            .with_context(|| call.to_string())?;
    }
    for function in functions(&mut client)? {
        ensure!(
            CALLS.iter().any(|call| call.contains(&function)),
            "{function} is not called"
        );
    }
    for (call, wanted) in REPORTS {
        let error = client.batch_execute(call).err().context(*call)?;
        let error = error.as_db_error().context("the connection was lost")?;
        let parts = [Some(error.message()), error.detail(), error.hint()];
        ensure!(
            parts
                .into_iter()
                .flatten()
                .any(|part| part.contains(wanted)),
            "{wanted:?} is not in {error:?}"
        );
    }
    Ok(Outcome::Passed)
}

/// Returns the functions that take a relation or a column.
fn functions(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(
        "SELECT DISTINCT p.proname::text
         FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
         JOIN pg_extension e ON e.oid = d.refobjid AND d.deptype = 'e'
         WHERE e.extname = 'pg_neardup'
           AND p.proargtypes::oid[] && '{regclass,name}'::regtype[]::oid[]",
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
