//! Writes the results of a refresh: clusters, canonical rows, log.

use crate::live::rows::{After, TrackedRows};
use crate::live::tracker::{Tracker, TrackerTable};
use crate::pg::prelude::*;
use crate::pg::settings::Settings;
use crate::pg::statement::{Statement, text_array};
use crate::pg::value::in_memory_of_its_own;
use neardup::cluster::live::{ClusterNumbers, Event, EventKind};
use pgrx::pg_sys::{FLOAT8ARRAYOID, INT8ARRAYOID, TEXTARRAYOID};
use std::time::{Duration, Instant};

/// Maximum number of rows that one statement writes.
const BATCH: usize = 10_000;

/// Writes the clusters of rows whose clusters changed. Returns the number of rows added minus the number deleted.
pub fn clusters(
    connection: &Connection,
    tracker: &Tracker,
    rows: &TrackedRows,
    numbers: &ClusterNumbers,
) -> i64 {
    let (table, type_) = (tracker.table(TrackerTable::Clusters), tracker.key_type());
    let put = |on_conflict: &str| {
        let put = format!(
            "INSERT INTO {table} AS m (key, cluster, canonical, similarity)
             SELECT u.key::{type_}, u.cluster, u.canonical::{type_}, u.similarity
             FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                 pg_catalog.unnest($4)) u (key, cluster, canonical, similarity) {on_conflict}"
        );
        let types = [TEXTARRAYOID, INT8ARRAYOID, TEXTARRAYOID, FLOAT8ARRAYOID];
        connection.prepare_kept(&put, &types)
    };
    let mut added = 0;
    let gone = rows
        .iter()
        .filter(|(_, row)| row.after == After::Gone && row.before.is_some())
        .map(|(number, _)| rows.key(number));
    let delete = connection.prepare_kept(
        &format!(
            "DELETE FROM {table} m USING pg_catalog.unnest($1) u (key) WHERE {}",
            tracker.equal("m.key", &format!("u.key::{type_}"))
        ),
        &[TEXTARRAYOID],
    );
    run_in_batches(&delete, gone.inspect(|_| added -= 1), |keys| {
        [Some(text_array(keys.iter().copied()))]
    });
    let moved = |is_new: bool| {
        rows.iter().filter_map(move |(number, row)| {
            let After::There(near) = row.after else {
                return None;
            };
            let canonical = near.map_or(number, |near| near.canonical);
            let cluster = numbers.of(canonical);
            let before = row.before.as_ref();
            let is_same =
                before.is_some_and(|before| before.cluster == cluster && before.near == near);
            let is_written = !is_same && before.is_none() == is_new;
            is_written.then_some((number, cluster, canonical, near.map(|near| near.similarity)))
        })
    };
    let arguments = |batch: &[(u32, i64, u32, Option<f64>)]| {
        let clusters = collected(batch.iter().map(|row| row.1)).or_raise();
        let similarities = collected(batch.iter().map(|row| row.3)).or_raise();
        [
            Some(text_array(batch.iter().map(|row| rows.key(row.0)))),
            clusters.into_datum(),
            Some(text_array(batch.iter().map(|row| rows.key(row.2)))),
            similarities.into_datum(),
        ]
    };
    let renew = "ON CONFLICT (key) DO UPDATE SET key = excluded.key, cluster = excluded.cluster,
         canonical = excluded.canonical, similarity = excluded.similarity";
    run_in_batches(&put(renew), moved(false), arguments);
    // The primary key rejects equal keys of different texts, such as 5 and 5.0.
    run_in_batches(&put(""), moved(true).inspect(|_| added += 1), arguments);
    added
}

/// Runs `statement` for batches of `elements`. `arguments` returns the statement's arguments for a batch.
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

/// Brings the canonical rows with `keys` up to date with the clusters and the tracked table.
pub fn canonicals(connection: &Connection, tracker: &Tracker, keys: &[&[u8]]) {
    let given = format!("u.key::{}", tracker.key_type());
    let is_given = |key: &str| {
        let is_equal = tracker.equal(key, &given);
        format!("AND EXISTS (SELECT FROM pg_catalog.unnest($1) u (key) WHERE {is_equal})")
    };
    for sql in updates_of_canonicals(tracker, is_given) {
        let statement = connection.prepare_kept(&sql, &[TEXTARRAYOID]);
        run_in_batches(&statement, keys.iter(), |batch| {
            [Some(text_array(batch.iter().map(|key| **key)))]
        });
    }
}

/// Brings all canonical rows up to date with the clusters and the tracked table. Returns the time that comparing them
/// and deleting the outdated ones took.
pub fn all_canonicals(connection: &Connection, tracker: &Tracker) -> Duration {
    let [delete, insert] = updates_of_canonicals(tracker, |_| String::new());
    // A nested loop planned while the table is empty would scan it for each inserted row.
    let settings = Settings::begin();
    settings.set(c"enable_nestloop", c"off");
    let started = Instant::now();
    connection.execute(&delete);
    let compared = started.elapsed();
    connection.execute(&insert);
    settings.restore();
    compared
}

/// Returns statements that delete and insert canonical rows to match the clusters and the tracked table. `is_given`
/// returns a condition on a key, beginning with AND.
fn updates_of_canonicals(tracker: &Tracker, is_given: impl Fn(&str) -> String) -> [String; 2] {
    let canonical = tracker.table(TrackerTable::Canonical);
    let [key, value] = [tracker.key_of("new"), tracker.value_of("new")];
    let columns = format!(
        "{key}, m.cluster, {}{}, {}",
        tracker.measure.kept(&value),
        tracker.of_scope(|_, column| format!(", new.{}", column.sql)),
        tracker.order.new_values_sql()
    );
    // A trigger on the clusters can have changed a row since it was read: the next refresh examines it.
    let are = format!(
        "{} new, {} m WHERE {} AND m.similarity IS NOT NULL AND {} AND {value} IS NOT NULL",
        tracker.base(),
        tracker.table(TrackerTable::Clusters),
        tracker.equal("m.key", "m.canonical"),
        tracker.equal(&key, "m.key")
    );
    let delete = format!(
        "DELETE FROM {canonical} ca WHERE NOT EXISTS (SELECT FROM {are} AND {}
             AND NOT pg_catalog.record_image_ne(ROW(ca.*), ROW({columns}))) {}",
        tracker.equal("m.key", "ca.key"),
        is_given("ca.key")
    );
    let insert = format!(
        "INSERT INTO {canonical} SELECT {columns} FROM {are}
             AND NOT EXISTS (SELECT FROM {canonical} ca WHERE {}) {}",
        tracker.equal("ca.key", "m.key"),
        is_given("m.key")
    );
    [delete, insert]
}

/// Writes `events` to the log. Their rows are numbered as in `rows`.
pub fn log(connection: &Connection, tracker: &Tracker, rows: &TrackedRows, events: Vec<Event>) {
    let sql = format!(
        "INSERT INTO {} (at, event, from_cluster, to_cluster, key, similarity, replaced)
         SELECT pg_catalog.clock_timestamp(), u.event, u.origin, u.target, u.key::{type_},
             u.similarity, CASE u.event WHEN '{}' THEN u.replaced::{type_} END
         FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
             pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6))
             u (event, origin, target, key, similarity, replaced)",
        tracker.table(TrackerTable::Log),
        EventKind::NewCanonical,
        type_ = tracker.key_type()
    );
    let types = [
        TEXTARRAYOID,
        INT8ARRAYOID,
        INT8ARRAYOID,
        TEXTARRAYOID,
        FLOAT8ARRAYOID,
        TEXTARRAYOID,
    ];
    let insert = connection.prepare_kept(&sql, &types);
    run_in_batches(&insert, events.into_iter(), |batch| {
        let from = collected(batch.iter().map(|event| event.from)).or_raise();
        let to = collected(batch.iter().map(|event| event.to)).or_raise();
        // The similarity of a joined row to its canonical row.
        let similarities = batch.iter().map(|event| match rows.get(event.row).after {
            After::There(near) if event.kind == EventKind::Joined => Some(near?.similarity),
            _ => None,
        });
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
