//! Compares estimates and exact similarities with the values that another program computed for real texts.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;
use crate::known::{Collection, Generated, WITH_EXACT_PAIRS};

/// Checks that labeled copies come out on top: each has a higher estimate than any pair that is not labeled and has an
/// exact similarity below 0.5.
pub fn truth_on_top(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::copies(), &["mccormick_2500"]) {
        let database = Database::with_extension(&server.main, "truth")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        collection.load_truth(&mut client, "truth")?;
        collection.load_exact(&mut client, "exact_w3", "exact")?;
        check_truth(&mut client).with_context(|| collection.name().to_string())?;
    }
    Ok(Outcome::Passed)
}

fn check_truth(client: &mut Client) -> Result<()> {
    let row = client.query_one(
        "WITH s AS MATERIALIZED (SELECT id, minhash(body) AS sig FROM docs), known AS (
             SELECT least(a, b) AS a, greatest(a, b) AS b FROM truth
             UNION SELECT a, b FROM exact)
         SELECT (SELECT min(minhash_sim(x.sig, y.sig))
                 FROM truth t JOIN s x ON x.id = t.a JOIN s y ON y.id = t.b),
                (SELECT max(minhash_sim(x.sig, y.sig)) FROM s x JOIN s y ON x.id < y.id
                 WHERE NOT EXISTS (SELECT FROM known k WHERE (k.a, k.b) = (x.id, y.id)))",
        &[],
    )?;
    let (lowest, highest): (f64, f64) = (row.get(0), row.get(1));
    ensure!(
        lowest > highest,
        "a labeled pair estimates {lowest}, another pair {highest}"
    );
    Ok(())
}

/// Checks ASCII documents, whose words are the same by every rule: `resemblance` is the exact value, and the estimate
/// is within four standard errors of it for 99.9 % of the pairs.
pub fn exact_lists(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::english(), WITH_EXACT_PAIRS) {
        let database = Database::with_extension(&server.main, "exact")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        collection.load_exact(&mut client, "exact_w3", "exact")?;
        compare(&mut client, collection.name())?;
    }
    Ok(Outcome::Passed)
}

fn compare(client: &mut Client, name: &str) -> Result<()> {
    let row = client.query_one(
        "WITH ascii AS MATERIALIZED (
             SELECT id, body, minhash(body) AS sig FROM docs
             WHERE octet_length(body) = char_length(body)),
         pairs AS (
             SELECT abs(resemblance(a.body, b.body, 3) - jaccard) < 5.01e-7 AS exact,
                    abs(minhash_sim(a.sig, b.sig) - jaccard)
                    <= 4 * sqrt(jaccard * (1 - jaccard) / 128) + 1e-6 AS close
             FROM exact e JOIN ascii a ON a.id = e.a JOIN ascii b ON b.id = e.b)
         SELECT count(*), count(*) FILTER (WHERE NOT exact), count(*) FILTER (WHERE NOT close)
         FROM pairs",
        &[],
    )?;
    let (pairs, wrong, far): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    ensure!(wrong == 0, "{name}: {wrong} of {pairs} resemblances differ");
    ensure!(
        far * 1000 <= pairs,
        "{name}: {far} of {pairs} estimates are more than four standard errors off"
    );
    Ok(())
}
