//! Documents and signatures in every form in which a server stores values.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, figure};

/// Lengths from a short header to a megabyte, with a column before them that changes their alignment.
const DOCUMENTS: &str = "
    CREATE TABLE docs (odd boolean, body text, pglz text, lz4 text, far text);
    ALTER TABLE docs ALTER body SET STORAGE plain, ALTER far SET STORAGE external,
        ALTER pglz SET COMPRESSION pglz, ALTER pglz SET STORAGE main;
    INSERT INTO docs (body) SELECT string_agg('word' || i * i % 997, ' ') FROM generate_series(1, 10) i;
    INSERT INTO docs (body) SELECT string_agg('word' || i * i % 997, ' ') FROM generate_series(1, 200) i;
    INSERT INTO docs (pglz, far) SELECT d, d FROM
        (SELECT string_agg('wörd' || i::bigint * i % 997, ' ') FROM generate_series(1, 2000) i
         UNION ALL SELECT string_agg(md5(i::text), ' ') FROM generate_series(1, 30000) i) v (d);
    UPDATE docs SET pglz = coalesce(pglz, body), far = coalesce(far, body)";

/// Checks that functions return the same answers for a stored document as for one from an expression.
pub fn every_form(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "storage")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCUMENTS)?;
    let mut forms = vec![
        ("body", "pg_column_size(body) < 126", "short header"),
        ("pglz", "pg_column_compression(pglz) = 'pglz'", "pglz"),
        ("far", "pg_column_size(far) > 4000", "out of line"),
    ];
    if has_lz4(&mut client)? {
        client.batch_execute("ALTER TABLE docs ALTER lz4 SET COMPRESSION lz4")?;
        client.batch_execute("UPDATE docs SET lz4 = far || ''")?;
        forms.push(("lz4", "pg_column_compression(lz4) = 'lz4'", "lz4"));
    } else {
        figure!("skipped lz4: this server is built without it");
    }
    for (column, form, name) in forms {
        let query = format!(
            "SELECT count(*) FILTER (WHERE {form}) > 0,
                    count(*) FILTER (WHERE {} IS DISTINCT FROM {})
             FROM docs WHERE {column} IS NOT NULL",
            answers(column),
            answers(&format!("({column} || '')")),
        );
        let row = client.query_one(&query, &[])?;
        let (there, wrong): (bool, i64) = (row.get(0), row.get(1));
        ensure!(there, "no document is stored as {name}");
        ensure!(wrong == 0, "{name}: {wrong} documents differ");
    }
    Ok(Outcome::Passed)
}

/// Returns a query whose functions read a whole document.
fn answers(document: &str) -> String {
    format!(
        "(minhash({document}), minhash({document}, 5, 'char', 'none'), simhash({document}),
          simhash({document}, 3, weighting => 'tf'), shingle_hashes({document}, 2), resemblance({document}, far))"
    )
}

fn has_lz4(client: &mut Client) -> Result<bool> {
    let query =
        "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'";
    Ok(client.query_one(query, &[])?.get(0))
}

/// Checks that signatures too long for their row are read from the TOAST table.
pub fn long_signatures(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "storage_signatures")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i, 'some words of text number ' || i || repeat(' and more', i) AS body
         FROM generate_series(1, 50) i;
         ALTER TABLE docs ADD sig minhash_signature;
         UPDATE docs SET sig = minhash(body, slots => 1024)",
    )?;
    let query = "SELECT pg_relation_size(reltoastrelid) > 50 * 4000 FROM pg_class WHERE oid = 'docs'::regclass";
    let far: bool = client.query_one(query, &[])?.get(0);
    ensure!(far, "the signatures are stored in their rows");
    let query = "
        WITH fresh AS (SELECT i, minhash(body, slots => 1024) AS sig FROM docs)
        SELECT count(*) FROM docs d JOIN fresh f USING (i) WHERE d.sig <> f.sig OR minhash_sim(d.sig, f.sig) <> 1
            OR NOT near_dup(d.sig, f.sig) OR (minhash_describe(d.sig)).slots <> (minhash_describe(f.sig)).slots
            OR minhash_pack(d.sig, 8) <> minhash_pack(f.sig, 8) OR (d.sig || f.sig) <> f.sig
            OR minhash_bands(d.sig, 0.8) <> minhash_bands(f.sig, 0.8)
        UNION ALL
        SELECT count(*) FROM (SELECT minhash_union(sig) AS sig FROM docs) d, (SELECT minhash_union(sig) AS sig FROM fresh) f
        WHERE d.sig <> f.sig";
    let wrong: i64 = client
        .query(query, &[])?
        .iter()
        .map(|row| row.get::<_, i64>(0))
        .sum();
    ensure!(wrong == 0, "{wrong} signatures differ");
    Ok(Outcome::Passed)
}
