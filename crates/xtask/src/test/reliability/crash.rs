//! Kills in the middle of work.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::{Outcome, Scale, collection};
use crate::server::Server;

/// The server is killed during load, VACUUM and index build; afterwards the index answers as the
/// scan does, and amcheck finds heap and indexes sound.
pub fn loses_nothing(server: &Server, scale: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("kills")?;
    cluster.create(&[("full_page_writes", "on"), ("autovacuum_naptime", "1s")])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup; CREATE EXTENSION amcheck")?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 2000)?;

    let kills = scale.of(2, 20);
    for kill in 0..kills {
        let statements = [
            "INSERT INTO docs SELECT i, make_body(i) FROM generate_series(
                 (SELECT max(id) + 1 FROM docs), (SELECT max(id) + 50 FROM docs)) i",
            "DELETE FROM docs WHERE id % 97 = (SELECT max(id) % 97 FROM docs)",
            "VACUUM docs",
            "REINDEX INDEX docs_sig",
        ];
        thread::scope(|scope| {
            for statement in statements {
                let connection = cluster.connect("postgres");
                // Every statement ends with the server, sooner or later.
                scope.spawn(move || {
                    let Ok(mut client) = connection else { return };
                    while client.batch_execute(statement).is_ok() {}
                });
            }
            thread::sleep(Duration::from_millis(300 + 170 * kill % 1000));
            cluster.crash()
        })?;
        cluster.start()?;
        let mut client = cluster.connect("postgres")?;
        collection::ensure_index_equals_scan(&mut client)?;
        let unsound: i64 = client
            .query_one("SELECT count(*) FROM verify_heapam('docs')", &[])?
            .get(0);
        anyhow::ensure!(
            unsound == 0,
            "amcheck reports {unsound} defects of the heap"
        );
        client.batch_execute("SELECT bt_index_parent_check('docs_pkey', true)")?;
        if server.pg.major >= 18 {
            client.batch_execute("SELECT gin_index_check('docs_sig')")?;
        }
    }
    println!("        {kills} kills, 0 differences");
    Ok(Outcome::Passed)
}
