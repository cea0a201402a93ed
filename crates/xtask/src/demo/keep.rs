//! Clusters that are kept up to date as documents arrive.

use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;

/// Keeps the clusters of all documents.
const TRACK: &str = "SELECT near_dup_track('documents', 'body', 0.8)";

/// Adds a copy of a document, with two more words.
const COPY: &str = "INSERT INTO documents (name, body)
    SELECT 'Copy of ' || name, body || ' copied here' FROM documents WHERE id = $1 RETURNING name";

const REFRESH: &str = "SELECT FROM near_dup_refresh('documents_clusters')";

/// Returns the last event of the log, with the number of documents in its cluster.
const EVENT: &str = "SELECT l.event, count(*)
    FROM documents_clusters_log l JOIN documents_clusters c ON c.cluster = l.to_cluster
    GROUP BY l.number, l.event ORDER BY l.number DESC LIMIT 1";

/// Kept clusters, and the event that a new document caused.
pub struct Kept {
    pub clusters: i64,
    pub track_time: Duration,
    pub copy: String,
    pub event: String,
    /// Number of documents in the cluster of the copy.
    pub members: i64,
    pub refresh_time: Duration,
}

/// Tracks the documents, adds a copy of one, and refreshes the clusters.
pub fn keep(client: &mut Client, document: i64) -> Result<Kept> {
    let start = Instant::now();
    client.batch_execute(TRACK)?;
    let track_time = start.elapsed();
    let clusters = "SELECT count(DISTINCT cluster) FROM documents_clusters";
    let clusters = client.query_one(clusters, &[])?.get(0);
    client.batch_execute(REFRESH)?;
    let copy = client.query_one(COPY, &[&document])?.get(0);
    let start = Instant::now();
    client.batch_execute(REFRESH)?;
    let refresh_time = start.elapsed();
    let event = client.query_one(EVENT, &[])?;
    Ok(Kept {
        clusters,
        track_time,
        copy,
        event: event.get(0),
        members: event.get(1),
        refresh_time,
    })
}
