//! Trackers after dump and restore.

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;
use crate::live::{Compared, Kept, TYPES};

const KEPT: Kept = Kept {
    table: "docs",
    key: "id",
    scope: None,
    clusters: "docs_clusters",
    threshold: 0.8,
    keep: "place DESC, id",
    condition: "place > 0",
    exceptions: Some("distinct_docs"),
};

const TABLE: &str =
    "CREATE TABLE docs (id int, place int, body text, PRIMARY KEY (id, place){definition});
    CREATE INDEX ON docs USING neardup ({column} {class});
    INSERT INTO docs SELECT i, i % 5, make_text(i % 7, i % 10) FROM generate_series(1, 100) i;
    CREATE TABLE distinct_docs (a int, b int);
    INSERT INTO distinct_docs SELECT i, i + 70 FROM generate_series(1, 20) i;
    SELECT near_dup_track('docs', '{column}', {threshold 0.8}, 'place DESC', key => 'id', condition => 'place > 0',
        exceptions => 'distinct_docs'{arguments});
    DELETE FROM docs WHERE id % 10 = 0";

const CHANGES: &str = "UPDATE docs SET body = make_text(1, 1) WHERE id % 7 = 0;
    INSERT INTO docs VALUES (1000, 1, make_text(2, 2));
    DELETE FROM distinct_docs WHERE a < 5; INSERT INTO distinct_docs VALUES (7, 14)";

/// Checks that restored clusters have the same numbers as before, are kept up to date, and are dropped completely.
pub fn restored(server: &Server) -> Result<Outcome> {
    for compared in TYPES {
        restored_of(server, compared).with_context(|| format!("column {}", compared.column))?;
    }
    Ok(Outcome::Passed)
}

fn restored_of(server: &Server, compared: &Compared) -> Result<()> {
    let source = Database::with_extension(&server.main, "live_dumped")?;
    let mut client = source.connect()?;
    client.batch_execute(&compared.texts())?;
    client.batch_execute(&compared.fill(TABLE))?;
    let dump = server.main.installation.program("pg_dump");
    let mut command = source.cluster.client_program(&dump);
    let script = command.arg(&source.name).output()?;
    ensure!(
        script.status.success(),
        "{}",
        String::from_utf8_lossy(&script.stderr)
    );
    let target = Database::create(&server.main, "live_restored", "")?;
    let output = target.psql(&String::from_utf8(script.stdout)?)?;
    ensure!(!output.contains("ERROR"), "{output}");
    let mut restored = target.connect()?;
    for client in [&mut client, &mut restored] {
        KEPT.ensure_law(client, false)?;
    }
    let numbers =
        "SELECT string_agg(key::text || ' ' || cluster, ', ' ORDER BY key) FROM docs_clusters";
    let [before, after] = [&mut client, &mut restored]
        .map(|client| -> Result<String> { Ok(client.query_one(numbers, &[])?.get(0)) });
    ensure!(before? == after?, "restored clusters have other numbers");
    restored.batch_execute(CHANGES)?;
    KEPT.ensure_law(&mut restored, false)?;
    restored.batch_execute(
        "DROP TABLE docs_clusters; INSERT INTO docs VALUES (2000, 1, make_text(2, 2))",
    )?;
    let left =
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'docs\\_clusters%' AND relkind = 'r'";
    let left: i64 = restored.query_one(left, &[])?.get(0);
    ensure!(left == 0, "{left} tables are left of a tracker");
    Ok(())
}
