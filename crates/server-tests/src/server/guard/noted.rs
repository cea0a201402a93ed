//! The rule of notes: of every two similar rows that exist, the row that passed later is noted with the other, and
//! there are no other notes.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// Finds notes that should not exist, pairs of similar rows without a note, and rows with the same number of notes as
/// another row of the same documents, which no order of passing produces.
const WRONG: &str = "
    WITH docs AS (SELECT id AS key, tenant, body FROM {TABLE} WHERE {OF_ROW} AND NOT draft),
        notes AS (SELECT key, near_key, similarity FROM {TABLE}_near_dups WHERE {OF_NOTE}),
        pairs AS (SELECT a.key, b.key AS near_key FROM docs a JOIN docs b USING (tenant, body) WHERE a.key <> b.key)
    SELECT (SELECT count(*) FROM notes n WHERE similarity <> 1
            OR NOT EXISTS (SELECT FROM pairs p WHERE (p.key, p.near_key) = (n.key, n.near_key))),
        (SELECT count(*) FROM pairs p WHERE NOT EXISTS (SELECT FROM notes n
            WHERE (n.key, n.near_key) IN ((p.key, p.near_key), (p.near_key, p.key)))),
        (SELECT count(*) FROM (
            SELECT FROM (SELECT tenant, body, (SELECT count(*) FROM notes n WHERE n.key = d.key) AS earlier FROM docs d) d
            GROUP BY tenant, body, earlier HAVING count(*) > 1) d),
        (SELECT count(*) FROM notes)";

/// Returns whether a table's guard notes near-duplicates.
pub fn is_noted(table: &str) -> bool {
    table.ends_with("_noted")
}

/// Checks the rows of a table that meet a condition on {ID}. Returns the number of their notes.
pub fn ensure_noted(client: &mut Client, table: &str, condition: &str) -> Result<u32> {
    let wrong = WRONG
        .replace("{TABLE}", table)
        .replace("{OF_ROW}", &condition.replace("{ID}", "id"))
        .replace("{OF_NOTE}", &condition.replace("{ID}", "key"));
    let row = client.query_one(&wrong, &[])?;
    let [unfounded, missing, disordered, notes] =
        [0, 1, 2, 3].map(|column| row.get::<_, i64>(column));
    ensure!(
        unfounded + missing + disordered == 0,
        "{unfounded} notes unfounded, {missing} missing, {disordered} out of order"
    );
    Ok(u32::try_from(notes)?)
}

/// Texts each of which begins like the longer ones, and a table whose rows are noted with at most two others.
const DOCS: &str = "
    CREATE TABLE texts AS SELECT n, (SELECT string_agg('word' || w, ' ') FROM generate_series(1, n) w) AS body
        FROM generate_series(4, 40) n;
    CREATE TABLE docs (id int PRIMARY KEY, body text);
    CREATE INDEX ON docs USING neardup (body);
    SELECT near_dup_protect('docs', 'body', 0.5, action => 'note', most => 2)";

const SIMILARITIES: &str = "SELECT x.n, y.n, resemblance(x.body, y.body) FROM texts x, texts y";

const FOUND: &str = "SELECT key, array_agg(near_key ORDER BY similarity DESC), array_agg(similarity ORDER BY similarity DESC)
    FROM docs_near_dups GROUP BY key";

/// The similarities of texts.
type Similarities = HashMap<(i32, i32), f64>;

/// Rows with the rows with which they are noted, the most similar first.
type Notes = HashMap<i32, Vec<(f64, i32)>>;

/// The rows that have passed, in order, with their texts; and the rows with which each is noted.
#[derive(Default)]
struct Model {
    rows: Vec<(i32, i32)>,
    notes: Notes,
}

impl Model {
    fn remove(&mut self, id: i32) {
        self.rows.retain(|(other, _)| *other != id);
        self.notes.remove(&id);
        for notes in self.notes.values_mut() {
            notes.retain(|(_, other)| *other != id);
        }
        self.notes.retain(|_, notes| !notes.is_empty());
    }

    fn pass(&mut self, id: i32, text: i32, similarities: &Similarities) {
        let note = |(other, of): &(i32, i32)| (similarities[&(text, *of)], *other);
        let mut notes: Vec<_> = self.rows.iter().map(note).collect();
        notes.retain(|(similarity, _)| *similarity >= 0.5);
        notes.sort_by(|a, b| b.0.total_cmp(&a.0));
        notes.truncate(2);
        if !notes.is_empty() {
            self.notes.insert(id, notes);
        }
        self.rows.push((id, text));
    }

    /// Returns whether the same rows are noted, with existing rows of the same similarity.
    fn agrees(&self, found: &Notes, similarities: &Similarities) -> bool {
        let texts: HashMap<i32, i32> = self.rows.iter().copied().collect();
        let agrees = |(key, notes): (&i32, &Vec<(f64, i32)>)| {
            let is_so = |&(similarity, near): &(f64, i32)| {
                let pair = texts.get(key).copied().zip(texts.get(&near).copied());
                pair.is_some_and(|pair| similarities[&pair] == similarity)
            };
            let similar =
                |notes: &[(f64, i32)]| notes.iter().map(|note| note.0).collect::<Vec<_>>();
            notes.iter().all(is_so)
                && self
                    .notes
                    .get(key)
                    .is_some_and(|own| similar(own) == similar(notes))
        };
        found.len() == self.notes.len() && found.iter().all(agrees)
    }
}

/// Checks after random changes that each row is noted with the most similar rows that had passed before it, as far as
/// these still exist.
pub fn most_similar(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_noted")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCS)?;
    let similarities: Similarities = client
        .query(SIMILARITIES, &[])?
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .collect();
    let (mut rng, mut model) = (Rng::with_seed(39), Model::default());
    for step in 0..300 {
        let count = if rng.u32(..20) == 0 {
            50
        } else {
            rng.i32(1..4)
        };
        let there = model.rows.get(rng.usize(..model.rows.len().max(1)));
        let id = there.map_or(0, |(id, _)| *id);
        let rows: Vec<(i32, i32)> = match rng.u32(..6) {
            0 => vec![],
            1 => vec![(id, rng.i32(4..41))],
            _ => (0..count)
                .map(|place| (step * 100 + place, rng.i32(4..41)))
                .collect(),
        };
        let values: Vec<_> = rows.iter().map(|row| format!("{row:?}")).collect();
        let mut change = format!("DELETE FROM docs WHERE id = {id}");
        if !rows.is_empty() {
            change = format!(
                "INSERT INTO docs SELECT id, body FROM (VALUES {}) v (id, n) JOIN texts USING (n) ORDER BY id
                 ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                values.join(", ")
            );
        }
        if rng.u32(..5) == 0 {
            change = format!("BEGIN; SAVEPOINT s; {change}; ROLLBACK TO s; COMMIT");
        } else {
            let is_new = |row: &&(i32, i32)| !model.rows.contains(row);
            for (id, text) in rows.iter().filter(is_new).collect::<Vec<_>>() {
                model.remove(*id);
                model.pass(*id, *text, &similarities);
            }
            if rows.is_empty() {
                model.remove(id);
            }
        }
        client.batch_execute(&change)?;
        let mut found = HashMap::new();
        for row in client.query(FOUND, &[])? {
            let (near, similar): (Vec<i32>, Vec<f64>) = (row.get(1), row.get(2));
            let notes: Vec<(f64, i32)> = similar.into_iter().zip(near).collect();
            found.insert(row.get(0), notes);
        }
        ensure!(
            model.agrees(&found, &similarities),
            "{change}: {found:?} instead of {:?}",
            model.notes
        );
        // Among rows with equal similarity, any may be noted.
        model.notes = found;
    }
    ensure!(
        model.notes.len() > 100,
        "{} rows are noted",
        model.notes.len()
    );
    Ok(Outcome::Passed)
}
