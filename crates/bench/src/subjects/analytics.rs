//! The examples of the page about analytics, with as many stories as there are documents.

use anyhow::{Context, Result, ensure};

use crate::measure::session::Session;
use crate::report::table::{Table, row};

const PAGE: &str = include_str!("../../../../docs/analytics.md");

/// The table of the page, filled from `docs`.
const STORIES: &str = "
    CREATE UNLOGGED TABLE stories (id bigint PRIMARY KEY, source text NOT NULL, published timestamptz NOT NULL,
        body text NOT NULL, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    INSERT INTO stories (id, source, published, body)
    SELECT number, 'Source ' || abs(hashint8(number)) % 200, now() - number * interval '30 seconds', body
    FROM (SELECT 1000 + row_number() OVER () AS number, body FROM docs) d;
    CREATE INDEX ON stories USING neardup (sig minhash_ops (threshold = 0.7));
    CREATE INDEX ON stories USING gin (to_tsvector('english', body));
    ANALYZE stories";

/// Tracks it, in a transaction of its own: rows may change unnoted in the one that makes the table.
const TRACK: &str =
    "SELECT near_dup_track('stories', 'sig', 0.7, keep => 'published'); ANALYZE stories_clusters";

/// Returns how long every example takes.
pub fn measure(session: &Session) -> Result<Table> {
    session.execute(STORIES)?;
    session.execute(TRACK)?;
    let stories = session.number("SELECT count(*) FROM stories")?;
    let columns = ["example of docs/analytics.md", "seconds"];
    let about = format!("The statements of each section, in their order, on {stories} stories.");
    let mut table = Table::new("live.analytics", about, &columns);
    for (section, statements) in examples()? {
        let seconds = session
            .seconds(&statements)
            .with_context(|| section.clone())?;
        table.push(row![section, seconds]);
    }
    Ok(table)
}

/// Returns the sections of the page after the first one, which fills its table, with their statements.
fn examples() -> Result<Vec<(String, String)>> {
    let mut examples = Vec::new();
    for section in PAGE.split("\n## ").skip(1) {
        let (title, text) = section.split_once('\n').context("an empty section")?;
        let blocks = text.split("```sql\n").skip(1);
        let statements: Vec<&str> = blocks
            .filter_map(|block| block.split("```").next())
            .collect();
        if !statements.is_empty() {
            examples.push((title.to_string(), statements.join("\n")));
        }
    }
    ensure!(examples.len() > 5, "the page has other sections");
    Ok(examples)
}
