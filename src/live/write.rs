//! Writes the results of a refresh: clusters, canonical rows, log.

use crate::live::rows::{After, TrackedRows};
use crate::live::tracker::Tracker;
use crate::pg::error::OrRaise;
use crate::pg::names;
use crate::pg::settings::Settings;
use crate::pg::statement::{Connection, Statement, text_array};
use crate::pg::value::in_memory_of_its_own;
use neardup::cluster::live::{ClusterNumbers, Event, EventKind};
use neardup::memory::{Grow, collected};
use pgrx::{IntoDatum, pg_sys};

/// Rows that one statement writes.
const BATCH: usize = 10_000;

/// Writes the clusters of the rows that have changed them. Returns the number of rows that it has added, less those
/// that it has deleted.
pub fn clusters(
    connection: &Connection,
    tracker: &Tracker,
    rows: &TrackedRows,
    numbers: &ClusterNumbers,
) -> i64 {
    let (table, type_) = (tracker.clusters(), tracker.key_type());
    let put = connection.prepare_kept(
        &format!(
            "INSERT INTO {table} AS m (key, cluster, canonical, similarity)
             SELECT u.key::{type_}, u.cluster, u.canonical::{type_}, u.similarity
             FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                 pg_catalog.unnest($4)) u (key, cluster, canonical, similarity)
             ON CONFLICT (key) DO UPDATE SET key = excluded.key, cluster = excluded.cluster,
                 canonical = excluded.canonical, similarity = excluded.similarity"
        ),
        &[
            pg_sys::TEXTARRAYOID,
            pg_sys::INT8ARRAYOID,
            pg_sys::TEXTARRAYOID,
            pg_sys::FLOAT8ARRAYOID,
        ],
    );
    let mut added = 0;
    let gone = rows
        .iter()
        .filter(|(_, row)| row.after == After::Gone && row.before.is_some())
        .map(|(number, _)| rows.key(number));
    delete(connection, tracker, &table, gone.inspect(|_| added -= 1));
    let moved = rows.iter().filter_map(|(number, row)| {
        let After::There(near) = row.after else {
            return None;
        };
        let canonical = near.map_or(number, |near| near.canonical);
        let cluster = numbers.of(canonical);
        let before = row.before.as_ref();
        let is_same = before.is_some_and(|before| before.cluster == cluster && before.near == near);
        added += i64::from(before.is_none());
        (!is_same).then_some((number, cluster, canonical, near.map(|near| near.similarity)))
    });
    run_in_batches(&put, moved, |batch| {
        let clusters = collected(batch.iter().map(|row| row.1)).or_raise();
        let similarities = collected(batch.iter().map(|row| row.3)).or_raise();
        [
            Some(text_array(batch.iter().map(|row| rows.key(row.0)))),
            clusters.into_datum(),
            Some(text_array(batch.iter().map(|row| rows.key(row.2)))),
            similarities.into_datum(),
        ]
    });
    added
}

/// Runs a statement for elements, a batch at a time; `arguments` makes its arguments of a batch.
fn run_in_batches<T, const N: usize>(
    statement: &Statement<'_>,
    mut elements: impl Iterator<Item = T>,
    arguments: impl Fn(&[T]) -> [Option<pg_sys::Datum>; N],
) {
    loop {
        let batch = collected(elements.by_ref().take(BATCH)).or_raise();
        if batch.is_empty() {
            return;
        }
        in_memory_of_its_own(|| statement.execute(&arguments(&batch)));
    }
}

/// Deletes the rows with these keys from a table of the tracker.
fn delete<'r>(
    connection: &Connection,
    tracker: &Tracker,
    table: &str,
    keys: impl Iterator<Item = &'r [u8]>,
) {
    let key = format!("u.key::{}", tracker.key_type());
    let delete = connection.prepare_kept(
        &format!(
            "DELETE FROM {table} m USING pg_catalog.unnest($1) u (key) WHERE {}",
            tracker.equal("m.key", &key)
        ),
        &[pg_sys::TEXTARRAYOID],
    );
    run_in_batches(&delete, keys, |keys| {
        [Some(text_array(keys.iter().copied()))]
    });
}

/// Adds the rows that became canonical, deletes the rows that are no longer, and writes changed ones anew.
pub fn canonicals(
    connection: &Connection,
    tracker: &Tracker,
    rows: &TrackedRows,
    numbers: &ClusterNumbers,
) {
    let ended = rows.iter().filter(|(number, row)| {
        let is_other = row.is_changed || !row.is_canonical(*number);
        row.was_canonical(*number) && row.after != After::Same && is_other
    });
    let ended = ended.map(|(number, _)| rows.key(number));
    delete(connection, tracker, &tracker.canonical(), ended);
    let begun = rows.iter().filter(|(number, row)| {
        row.is_canonical(*number) && (row.is_changed || !row.was_canonical(*number))
    });
    let insert = connection.prepare_kept(
        &format!(
            "{} JOIN ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) u (key, cluster)
                 ON {}",
            insert_canonicals(tracker, "u.cluster"),
            tracker.equal(
                &tracker.key_of("b"),
                &format!("u.key::{}", tracker.key_type())
            )
        ),
        &[pg_sys::TEXTARRAYOID, pg_sys::INT8ARRAYOID],
    );
    run_in_batches(&insert, begun.map(|(number, _)| number), |batch| {
        let clusters = collected(batch.iter().map(|row| numbers.of(*row))).or_raise();
        let keys = text_array(batch.iter().map(|row| rows.key(*row)));
        [Some(keys), clusters.into_datum()]
    });
}

/// Writes all canonical rows as the clusters have them.
pub fn all_canonicals(connection: &Connection, tracker: &Tracker) {
    let canonical = tracker.canonical();
    let are = format!(
        "{} m WHERE {} AND m.similarity IS NOT NULL AND {}",
        tracker.clusters(),
        tracker.equal("m.key", "m.canonical"),
        tracker.equal(&tracker.key_of("b"), "m.key")
    );
    let delete = format!(
        "DELETE FROM {canonical} ca WHERE NOT EXISTS (
             SELECT FROM {} b, {are} AND {}
                 AND NOT pg_catalog.record_image_ne(ROW(ca.*), ROW({})))",
        tracker.base(),
        tracker.equal("m.key", "ca.key"),
        canonical_columns(tracker, "m.cluster"),
    );
    let insert = format!(
        "{}, {are} AND NOT EXISTS (SELECT FROM {canonical} ca WHERE {})",
        insert_canonicals(tracker, "m.cluster"),
        tracker.equal("ca.key", "m.key")
    );
    // Planned while the table is empty, a nested loop would scan it for each row that it inserts.
    let settings = Settings::begin();
    settings.set(c"enable_nestloop", c"off");
    for statement in [delete, insert] {
        connection.execute(&statement);
    }
    settings.restore();
}

/// Returns the beginning of a statement that inserts rows of the table as canonical ones.
fn insert_canonicals(tracker: &Tracker, cluster: &str) -> String {
    let columns = canonical_columns(tracker, cluster);
    format!(
        "INSERT INTO {} SELECT {columns} FROM {} b",
        tracker.canonical(),
        tracker.base()
    )
}

/// Returns the columns of the table's row `b` as a canonical one, as a list.
fn canonical_columns(tracker: &Tracker, cluster: &str) -> String {
    format!(
        "{}, {cluster}, {}{}, {}",
        tracker.key_of("b"),
        tracker.measure.kept(&tracker.value_of("b")),
        tracker.of_scope(|_, column| format!(", b.{}", column.name)),
        tracker.order.of_base()
    )
}

/// Writes events to the log, a batch at a time.
pub struct Log<'a> {
    insert: Statement<'a>,
    rows: &'a TrackedRows,
    events: Vec<Event>,
}

impl<'a> Log<'a> {
    pub fn new(connection: &'a Connection, tracker: &Tracker, rows: &'a TrackedRows) -> Self {
        let table = names::relation(tracker.tables.log);
        let insert = connection.prepare_kept(
            &format!(
                "INSERT INTO {table} (at, event, from_cluster, to_cluster, key, similarity, replaced)
             SELECT pg_catalog.clock_timestamp(), u.event, u.origin, u.target, u.key::{type_},
                 u.similarity, CASE u.event WHEN '{}' THEN u.replaced::{type_} END
             FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                 pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6))
                 u (event, origin, target, key, similarity, replaced)",
                EventKind::NewCanonical,
                type_ = tracker.key_type()
            ),
            &[
                pg_sys::TEXTARRAYOID,
                pg_sys::INT8ARRAYOID,
                pg_sys::INT8ARRAYOID,
                pg_sys::TEXTARRAYOID,
                pg_sys::FLOAT8ARRAYOID,
                pg_sys::TEXTARRAYOID,
            ],
        );
        Self {
            insert,
            rows,
            events: Vec::new(),
        }
    }

    pub fn add(&mut self, event: Event) {
        self.events.try_push(event).or_raise();
        if self.events.len() == BATCH {
            self.write();
        }
    }

    /// Writes the events that have been added since the last batch.
    pub fn write(&mut self) {
        let (events, rows) = (std::mem::take(&mut self.events), self.rows);
        run_in_batches(&self.insert, events.into_iter(), |batch| {
            let from = collected(batch.iter().map(|event| event.from)).or_raise();
            let to = collected(batch.iter().map(|event| event.to)).or_raise();
            let similarities = batch.iter().map(|event| similarity(rows, event));
            let names = batch
                .iter()
                .map(|event| <&str>::from(event.kind).as_bytes());
            let keys = batch.iter().map(|event| rows.key(event.row));
            let replaced = batch.iter().map(|event| rows.key(event.replaced));
            [
                Some(text_array(names)),
                from.into_datum(),
                to.into_datum(),
                Some(text_array(keys)),
                collected(similarities).or_raise().into_datum(),
                Some(text_array(replaced)),
            ]
        });
    }
}

/// Returns the similarity of a row that joined a cluster to the canonical row; None for other events.
fn similarity(rows: &TrackedRows, event: &Event) -> Option<f64> {
    match (event.kind, rows.get(event.row).after) {
        (EventKind::Joined, After::There(near)) => near.map(|near| near.similarity),
        _ => None,
    }
}
