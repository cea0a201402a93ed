//! Kept clusters and those computed from scratch: the documents, the types, and the comparison.

use anyhow::{Result, ensure};
use postgres::Client;

/// Creates `make_text(document, edits)`, texts of a few documents, in which only texts with similar numbers of edits
/// are near each other; and `near_texts`, the near texts, by definition, with their similarities.
const TEXTS: &str = "CREATE FUNCTION make_text(document int, edits int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(CASE WHEN w < edits * 3 THEN 'e' ELSE 'w' END || document || 'x' || w, ' ' ORDER BY w)
    FROM generate_series(0, 29) w $$;
    CREATE TABLE all_texts AS SELECT body, {value} AS value
    FROM (SELECT DISTINCT make_text(d, e) FROM generate_series(0, 50) d, generate_series(0, 10) e
        UNION ALL SELECT 'w1x1 w1x2 w1x3 copied ' || i FROM generate_series(0, 1) i) t (body);
    CREATE TABLE near_texts AS SELECT a.body AS a, b.body AS b, {similarity} AS similarity, {nearness} AS nearness
    FROM all_texts a, all_texts b WHERE {nearness} >= 0.5;
    DROP TABLE all_texts; ANALYZE near_texts";

/// A type of a tracked column, which is made from the text `body`.
#[derive(Debug)]
pub struct Compared {
    /// The name of the column.
    pub column: &'static str,
    /// The definition of the column; empty for the text itself.
    pub definition: &'static str,
    /// The operator class of an index that serves similarity 0.5.
    pub class: &'static str,
    /// Arguments that follow the other arguments of `near_dup_track`.
    pub arguments: &'static str,
    value: &'static str,
    /// The similarity of `a.value` and `b.value`.
    similarity: &'static str,
    /// The distance of bit strings that corresponds to similarity 0.
    farthest: Option<u32>,
}

pub const OF_SIGNATURES: &Compared = &Compared {
    column: "sig",
    definition: ", sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED",
    class: "minhash_ops (threshold = 0.5)",
    arguments: "",
    value: "minhash(body, 1)",
    similarity: "minhash_sim(a.value, b.value)",
    farthest: None,
};

/// All types that trackers compare.
pub const TYPES: [&Compared; 4] = [
    OF_SIGNATURES,
    &Compared {
        column: "body",
        definition: "",
        class: "text_ops (k = 1)",
        arguments: ", k => 1",
        value: "body",
        similarity: "resemblance(a.value, b.value, 1)",
        farthest: None,
    },
    &Compared {
        column: "shingles",
        definition: ", shingles bigint[] GENERATED ALWAYS AS (shingle_hashes(body, 1)) STORED",
        class: "set_ops",
        arguments: "",
        value: "shingle_hashes(body, 1)",
        similarity: "jaccard(a.value, b.value)",
        farthest: None,
    },
    &Compared {
        column: "hash",
        definition: ", hash bit(64) GENERATED ALWAYS AS (simhash(nullif(body, ''), 1)::bit(64)) STORED",
        class: "hamming_ops (distance = 16)",
        arguments: "",
        value: "simhash(body, 1)",
        similarity: "(1 - bit_hamming(a.value, b.value)::float8 / 64)",
        farthest: Some(32),
    },
];

impl Compared {
    /// Returns the statements that create `make_text` and `near_texts`.
    pub fn texts(&self) -> String {
        let texts = TEXTS.replace("{value}", self.value);
        let nearness = match self.farthest {
            Some(farthest) => {
                format!("(1 - bit_hamming(a.value, b.value)::float8 / {farthest})")
            }
            None => self.similarity.to_string(),
        };
        texts
            .replace("{similarity}", self.similarity)
            .replace("{nearness}", &nearness)
    }

    /// Returns the threshold of a tracker for pairs whose similarity is at least this.
    pub fn threshold(&self, similarity: f64) -> String {
        match self.farthest {
            Some(farthest) => ((1.0 - similarity) * f64::from(farthest))
                .floor()
                .to_string(),
            None => similarity.to_string(),
        }
    }

    /// Returns a statement in which the column's definition, name and class, the arguments of `near_dup_track`, and
    /// thresholds, such as `{threshold 0.8}`, are filled in.
    pub fn fill(&self, statement: &str) -> String {
        let filled = statement
            .replace("{definition}", self.definition)
            .replace("{column}", self.column)
            .replace("{class}", self.class)
            .replace("{arguments}", self.arguments);
        let mut parts = filled.split("{threshold ");
        let mut result = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let (similarity, rest) = part.split_once('}').expect("the brace is closed");
            let similarity = similarity.parse().expect("a number");
            result += &(self.threshold(similarity) + rest);
        }
        result
    }
}

/// A tracker under test.
pub struct Kept {
    /// The tracked table, its key in SQL, and the columns that separate clusters.
    pub table: &'static str,
    pub key: &'static str,
    pub scope: Option<&'static str>,
    pub clusters: &'static str,
    pub threshold: f64,
    /// The complete order.
    pub keep: &'static str,
    /// The condition on rows, and the table of exceptions.
    pub condition: &'static str,
    pub exceptions: Option<&'static str>,
}

impl Kept {
    /// Returns the tracker, with threshold 0.8, of a table `docs` with the key `id`, in this complete order.
    pub const fn docs(keep: &'static str) -> Self {
        Self {
            table: "docs",
            key: "id",
            scope: None,
            clusters: "docs_clusters",
            threshold: 0.8,
            keep,
            condition: "true",
            exceptions: None,
        }
    }

    /// Brings the clusters up to date, and fails unless they equal those computed from scratch.
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
            condition,
            exceptions,
            ..
        } = self;
        let (scope, same_scope) = match self.scope {
            Some(scope) => (scope, format!("AND x.{scope} = y.{scope}")),
            None => ("true", String::new()),
        };
        let excepted = exceptions.map_or(String::new(), |exceptions| {
            format!(
                "AND NOT EXISTS (SELECT FROM {exceptions} e WHERE (e.a::text, e.b::text)
                     IN ((x.key_of_row, y.key_of_row), (y.key_of_row, x.key_of_row)))"
            )
        });
        let computed = format!(
            "SELECT c.key, c.cluster, CASE WHEN t.is_near THEN c.similarity END AS similarity
             FROM star_clusters(NULL::text,
                 $q$SELECT ({key})::text AS key_of_row FROM {table} WHERE {condition} ORDER BY {keep}$q$,
                 $q$WITH t AS (SELECT *, ({key})::text AS key_of_row FROM {table} WHERE {condition})
                     SELECT x.key_of_row, y.key_of_row, n.similarity
                     FROM t x JOIN near_texts n ON n.a = x.body JOIN t y ON n.b = y.body
                     WHERE x.key_of_row < y.key_of_row AND n.nearness >= {threshold} {same_scope} {excepted}$q$) c
             JOIN (SELECT ({key})::text AS key, body <> '' AND {scope} IS NOT NULL AS is_near FROM {table}) t
                 USING (key)"
        );
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
