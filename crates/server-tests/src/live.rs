//! Kept clusters beside those computed from scratch: the documents and the comparison.

use anyhow::{Result, ensure};
use postgres::Client;

/// `make_text(document, edits)`: texts of few documents, each edit near the next ones alone.
pub const TEXTS: &str = "CREATE FUNCTION make_text(document int, edits int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(CASE WHEN w < edits * 3 THEN 'e' ELSE 'w' END || document || 'x' || w, ' ' ORDER BY w)
    FROM generate_series(0, 29) w $$";

/// A tracker under test.
pub struct Kept {
    /// The tracked table, its key as SQL, and the columns that keep clusters apart.
    pub table: &'static str,
    pub key: &'static str,
    pub scope: Option<&'static str>,
    pub clusters: &'static str,
    pub threshold: f64,
    /// The whole order.
    pub keep: &'static str,
}

impl Kept {
    /// Returns the tracker at 0.8 of a table `docs` with the key `id`, in that whole order.
    pub const fn docs(keep: &'static str) -> Self {
        Self {
            table: "docs",
            key: "id",
            scope: None,
            clusters: "docs_clusters",
            threshold: 0.8,
            keep,
        }
    }

    /// Brings the clusters up to date, and fails unless they are those computed from scratch.
    pub fn ensure_law(&self, client: &mut Client, rebuild: bool) -> Result<()> {
        let clusters = self.clusters;
        client.execute(
            "SELECT near_dup_refresh($1::text::regclass, $2)",
            &[&clusters, &rebuild],
        )?;
        let rows = client.query(&self.differences(), &[])?;
        let shown: Vec<String> = rows
            .iter()
            .map(|row| {
                let [key, kept, computed] = [0, 1, 2].map(|column| {
                    let text: Option<String> = row.get(column);
                    text.unwrap_or_else(|| "nothing".to_string())
                });
                format!("{key} is kept with {kept}, computed with {computed}")
            })
            .collect();
        ensure!(
            shown.is_empty(),
            "{clusters}: {} rows differ: {}",
            shown.len(),
            shown[..shown.len().min(5)].join("; ")
        );
        Ok(())
    }

    /// Returns a query for the rows whose kept clusters differ from computed ones.
    fn differences(&self) -> String {
        let Self {
            table,
            key,
            clusters,
            threshold,
            keep,
            ..
        } = self;
        let query = |condition: &str| {
            format!(
                "SELECT ({key})::text AS key_of_row, sig FROM {table} WHERE {condition} ORDER BY {keep}"
            )
        };
        let computed = match self.scope {
            None => format!(
                "SELECT * FROM near_dup_clusters(NULL::text, $q${}$q$, {threshold})",
                query("true")
            ),
            Some(scope) => format!(
                "SELECT c.* FROM (SELECT DISTINCT {scope} FROM {table} WHERE {scope} IS NOT NULL) s,
                     near_dup_clusters(NULL::text, format($q${}$q$, {scope}), {threshold}) c
                 UNION ALL SELECT ({key})::text, ({key})::text, NULL FROM {table} WHERE {scope} IS NULL",
                query(&format!("{scope} = %L"))
            ),
        };
        format!(
            "SELECT coalesce(k.key::text, c.key), concat_ws(' ', k.canonical, k.similarity),
                 concat_ws(' ', c.cluster, c.similarity)
             FROM {clusters} k FULL JOIN ({computed}) c ON c.key = k.key::text
             WHERE (k.canonical::text, k.similarity) IS DISTINCT FROM (c.cluster, c.similarity)
             UNION ALL
             SELECT k.key::text, k.cluster::text, o.cluster::text
             FROM {clusters} k JOIN {clusters} o ON o.key = k.canonical WHERE o.cluster <> k.cluster
             UNION ALL
             SELECT max(key::text), cluster::text, 'one canonical row'
             FROM {clusters} GROUP BY cluster HAVING count(DISTINCT canonical) > 1"
        )
    }
}
