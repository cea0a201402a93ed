//! Finding the near-duplicate pairs through the B-tree of band keys.

use anyhow::Result;
use postgres::Client;

use super::THRESHOLD;

/// One document of every set of documents with the same signature. Without this step a licence
/// that is there a thousand times would make half a million pairs of its own. An empty document
/// is similar to nothing, not even to itself.
const DISTINCT: &str = "
    CREATE TEMP TABLE different AS
        SELECT min(id) AS id, sig, count(*) AS copies FROM documents
        WHERE minhash_sim(sig, sig) = 1
        GROUP BY sig;
    CREATE UNIQUE INDEX ON different (id);
    ANALYZE different;";

/// Similar documents share bands, and at least so many that no answer is missed.
const PAIRS: &str = "
    WITH bands AS MATERIALIZED (
        SELECT id, band FROM document_bands JOIN different USING (id)
    ), candidates AS (
        SELECT a.id AS a, b.id AS b
        FROM bands a JOIN bands b ON a.band = b.band AND a.id < b.id
        GROUP BY a.id, b.id
        HAVING count(*) >= minhash_intact(128, 0.8, $1)
    )
    SELECT a, b, minhash_sim(x.sig, y.sig) AS similarity
    FROM candidates JOIN different x ON x.id = a JOIN different y ON y.id = b
    WHERE minhash_sim(x.sig, y.sig) >= $1
    ORDER BY a, b";

/// A text that occurs once or more.
pub struct Text {
    /// The first document with it.
    pub id: i64,
    /// How many documents have it.
    pub copies: i64,
}

/// The near-duplicates.
pub struct Found {
    /// All different texts, by id.
    pub texts: Vec<Text>,
    /// Similar different texts: the two ids, the smaller first, and their similarity.
    pub pairs: Vec<(i64, i64, f64)>,
}

/// Finds all pairs at or above the threshold.
pub fn find(client: &mut Client) -> Result<Found> {
    client.batch_execute(DISTINCT)?;
    let texts = client.query("SELECT id, copies FROM different ORDER BY id", &[])?;
    let pairs = client.query(PAIRS, &[&THRESHOLD])?;
    Ok(Found {
        texts: texts
            .iter()
            .map(|row| Text {
                id: row.get(0),
                copies: row.get(1),
            })
            .collect(),
        pairs: pairs
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2)))
            .collect(),
    })
}
