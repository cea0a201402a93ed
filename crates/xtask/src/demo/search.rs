//! Finding near-duplicates with the extension's functions and its index.

use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;

use super::keep::{Kept, keep};
use super::reject::{Rejected, reject};

/// The number of groups to look at, and the number of texts of each.
const GROUPS: i64 = 8;
const MEMBERS: i64 = 4;

/// Star clusters of all documents.
const CLUSTERS: &str = "
    CREATE TABLE clusters AS SELECT key AS id, cluster, similarity
        FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM documents ORDER BY id', 0.8);
    CREATE INDEX ON clusters (cluster);
    ANALYZE clusters";

/// Finds pairs of different texts: a license that occurs a thousand times would make half a million pairs by itself.
const PAIRS: &str = "
    CREATE TABLE pairs AS SELECT a, b, similarity
        FROM near_dup_pairs(NULL::bigint, 'SELECT DISTINCT ON (md5(body)) id, body FROM documents ORDER BY md5(body), id', 0.8)";

/// Finds the clusters of several texts, the largest first.
const LARGEST: &str = "
    SELECT cluster, count(*) AS documents, count(DISTINCT md5(body)) AS texts
    FROM clusters JOIN documents USING (id)
    GROUP BY cluster HAVING count(DISTINCT md5(body)) > 1
    ORDER BY documents DESC, cluster";

/// Returns the texts of a cluster, the first one followed by those most similar to it, each with the number of its
/// occurrences and its differences from the first.
const TEXTS: &str = "
    WITH texts AS (
        SELECT min(id) AS id, count(*) AS documents, max(similarity) AS similarity
        FROM clusters JOIN documents USING (id) WHERE cluster = $1
        GROUP BY md5(body) ORDER BY min(id) <> $1, similarity DESC, id LIMIT $2)
    SELECT d.name, t.documents, t.similarity, e.kind, e.words_only_in_a, e.words_only_in_b
    FROM texts t JOIN documents d USING (id) JOIN documents first ON first.id = $1,
         near_dup_explain(first.body, d.body) e
    ORDER BY t.id <> $1, t.similarity DESC, t.id";

/// Looks up the near-duplicates of one document through the index.
const LOOKUP: &str = "SELECT count(*) FROM documents WHERE near_dup(body, (SELECT body FROM documents WHERE id = $1), 0.8)";

/// Returns the documents most similar to one document, in order.
const NEAREST: &str = "WITH one AS (SELECT body FROM documents WHERE id = $1)
    SELECT name FROM documents WHERE near_dup(body, (SELECT body FROM one), 0.8)
    ORDER BY resemblance(body, (SELECT body FROM one)) DESC, id LIMIT 10";

/// A text of a group.
pub struct Text {
    pub name: String,
    /// Number of documents that have it.
    pub documents: i64,
    pub similarity: Option<f64>,
    /// The kind of difference from the group's first text.
    pub kind: String,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

/// A cluster.
pub struct Group {
    pub documents: i64,
    pub different: i64,
    /// The text of the first document, and those most similar to it.
    pub texts: Vec<Text>,
}

/// The findings, and the time that they took.
pub struct Found {
    pub groups: Vec<Group>,
    /// Number of clusters of several texts.
    pub clusters: usize,
    pub pairs: i64,
    /// Number of documents with the same text as an earlier one.
    pub copies: i64,
    pub search_time: Duration,
    pub lookup_time: Duration,
    pub order_time: Duration,
    pub kept: Kept,
    pub rejected: Rejected,
}

/// Clusters the documents, finds all pairs, and looks at the largest groups.
pub fn find(client: &mut Client) -> Result<Found> {
    let start = Instant::now();
    client.batch_execute(CLUSTERS)?;
    client.batch_execute(PAIRS)?;
    let search_time = start.elapsed();
    let largest = client.query(LARGEST, &[])?;
    let mut groups = Vec::new();
    for row in largest.iter().take(GROUPS as usize) {
        groups.push(Group {
            documents: row.get(1),
            different: row.get(2),
            texts: texts(client, row.get(0))?,
        });
    }
    let first = largest.first().map_or(1, |row| row.get(0));
    let figures = client.query_one(
        "SELECT (SELECT count(*) FROM pairs), count(*) - count(DISTINCT md5(body)) FROM documents",
        &[],
    )?;
    Ok(Found {
        groups,
        clusters: largest.len(),
        pairs: figures.get(0),
        copies: figures.get(1),
        search_time,
        lookup_time: time_warm(client, LOOKUP, first)?,
        order_time: time_warm(client, NEAREST, first)?,
        kept: keep(client, first)?,
        rejected: reject(client)?,
    })
}

fn texts(client: &mut Client, cluster: i64) -> Result<Vec<Text>> {
    let rows = client.query(TEXTS, &[&cluster, &(MEMBERS + 1)])?;
    let text = |row: &postgres::Row| Text {
        name: row.get(0),
        documents: row.get(1),
        similarity: row.get(2),
        kind: row.get(3),
        removed: row.get(4),
        added: row.get(5),
    };
    Ok(rows.iter().map(text).collect())
}

/// Returns the time of a query about a document whose pages are in memory.
fn time_warm(client: &mut Client, query: &str, id: i64) -> Result<Duration> {
    let statement = client.prepare(query)?;
    client.query(&statement, &[&id])?;
    let start = Instant::now();
    client.query(&statement, &[&id])?;
    Ok(start.elapsed())
}
