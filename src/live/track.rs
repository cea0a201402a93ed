//! `near_dup_track`: begins to keep clusters.

use crate::live::access::{check_owner, lock, rights_for};
use crate::live::create::{Creation, create_index};
use crate::live::indexes::rule;
use crate::live::leaves::Leaf;
use crate::live::order::Order;
use crate::live::refresh::Refresh;
use crate::live::shape::{TrackedColumn, TrackedKey};
use crate::live::state::State;
use crate::live::tracker::{Tables, Tracker};
use crate::options;
use crate::pg::arrays::names_in;
use crate::pg::call::Call;
use crate::pg::catalog::type_named;
use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::statement::{Connection, Snapshot, utf8};
use crate::pg::text::Text;
use pgrx::prelude::*;
use std::time::Instant;

/// `near_dup_track(relation, signature_column, threshold, keep, clusters, scope, immediate)` makes the
/// tables of a tracker and its triggers, and computes the clusters. Returns the table of clusters.
/// Writers of the table wait meanwhile.
///
/// # Errors
/// `insufficient_privilege` unless the caller owns the table; `object_not_in_prerequisite_state` for a
/// table without a primary key, or without an index that serves the threshold;
/// `invalid_object_definition` for an order that is not immutable; those of CREATE TABLE.
#[pg_extern(sql = false)]
fn near_dup_track(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Oid {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    let mut tracker = requested(&call);
    check_owner(&tracker);
    check_table(tracker.relation);
    let columns = key_columns(tracker.relation);
    check_signature(&tracker);
    check_index(&tracker);
    // SAFETY: the arguments are a text and a name.
    let (keep, name) = unsafe {
        let keep = call.optional_argument(3).map(|keep| Text::from_raw(keep));
        (
            keep,
            call.optional_argument(4).map(|name| names::name(name)),
        )
    };
    let keep = keep.map(|keep| String::from_utf8_lossy(&keep).into_owned());
    let name = name.unwrap_or_else(|| names::derived(&names::bare(tracker.relation), "clusters"));

    let connection = Connection::open();
    let table = names::relation(tracker.relation);
    connection.execute(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"));
    let key: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    // Names in the list are looked up as the caller does it.
    let order = Order::prepare(
        &connection,
        tracker.relation,
        keep.as_deref(),
        &key.join(", "),
    );
    let rights = rights_for(tracker.relation);
    tracker.keep = Order::of_query(tracker.relation, &order).list();
    let shape = Creation::new(&connection, &name, tracker, columns).run();
    lock(&connection, &shape.tracker);
    let leaves = Leaf::all_of(&shape.tracker);
    let snapshot = Snapshot::take();
    let (state, _) = State::begin(&connection, &shape.tracker, &snapshot, leaves);
    let first = Refresh {
        connection: &connection,
        shape: &shape,
        snapshot: &snapshot,
        state,
        started: Instant::now(),
    };
    first.rebuild(false);
    create_index(&connection, &shape);
    snapshot.release();
    connection.close();
    rights.resign();
    shape.tracker.tables.clusters
}

/// Returns the tracker that a call asks for, without its tables.
fn requested(call: &Call) -> Tracker {
    // SAFETY: the arguments are of the declared types.
    unsafe {
        let scope = call.optional_argument(5).map(|scope| names_in(scope));
        Tracker {
            relation: pg_sys::Oid::from(call.argument(0, "relation").value() as u32),
            tables: Tables::NONE,
            signature: names::name(call.argument(1, "signature_column")),
            threshold: options::threshold_argument(call, 2),
            keep: String::new(),
            scope: scope
                .unwrap_or_default()
                .iter()
                .map(|name| utf8(name))
                .collect(),
            is_immediate: call.argument(6, "immediate").value() != 0,
            schema: call.schema(),
            function: call.function(),
        }
    }
}

/// # Errors
/// ERROR `wrong_object_type` for what is no table, and for tables whose rows are not all their own;
/// `feature_not_supported` for temporary ones.
fn check_table(relation: pg_sys::Oid) {
    let table = Relation::open_table(relation);
    let refuse = |code, what: &str| {
        raise(
            code,
            &format!(
                "near_dup_track cannot track {what} {}",
                names::relation(relation)
            ),
            "Tables and partitioned tables can be tracked.",
        )
    };
    // SAFETY: the table is open.
    let form = unsafe { &*(*table.as_ptr()).rd_rel };
    let wrong = PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE;
    match table.kind() {
        pg_sys::RELKIND_RELATION if form.relispartition => refuse(wrong, "partition"),
        pg_sys::RELKIND_RELATION if form.relhassubclass => refuse(wrong, "table with children"),
        pg_sys::RELKIND_RELATION => {}
        pg_sys::RELKIND_PARTITIONED_TABLE if form.relispartition => refuse(wrong, "partition"),
        pg_sys::RELKIND_PARTITIONED_TABLE => {}
        _ => refuse(wrong, "relation"),
    }
    if form.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP {
        let code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
        refuse(code, "temporary table");
    }
}

/// Returns the columns of a table's primary key.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state` without one.
fn key_columns(relation: pg_sys::Oid) -> Vec<TrackedColumn> {
    TrackedKey::columns_of(&Relation::open_table(relation)).unwrap_or_else(|| {
        let table = names::relation(relation);
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("near_dup_track needs a primary key on table {table}"),
            &format!("ALTER TABLE {table} ADD PRIMARY KEY (id);"),
        )
    })
}

/// # Errors
/// ERROR `datatype_mismatch` where the column holds no signatures.
fn check_signature(tracker: &Tracker) {
    let table = Relation::open_table(tracker.relation);
    let column = TrackedColumn::named(&table, &tracker.signature);
    // SAFETY: plain catalog lookup.
    let base_type = unsafe { pg_sys::getBaseType(column.type_) };
    if base_type != type_named(tracker.schema, c"minhash_signature") {
        raise(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            &format!("near_dup_track: column {} holds no signatures", column.name),
            "Name a column of type minhash_signature.",
        );
    }
}

/// # Errors
/// ERROR `object_not_in_prerequisite_state` where a table with rows lacks an index that finds what is
/// near within the scope.
fn check_index(tracker: &Tracker) {
    let table = Relation::open_table(tracker.relation);
    for name in &tracker.scope {
        TrackedColumn::named(&table, name).equality();
    }
    let names = tracker.scope.iter().map(String::as_str);
    let rule = rule(tracker, &table, &tracker.signature, names);
    let scope = tracker.scope.len();
    let tables = rule.tables(tracker.relation);
    let lacks = |index: Option<&crate::guard::table::UsableIndex>| {
        index.is_none_or(|index| index.scope.len() < scope)
    };
    if let Some(lacking) = tables.iter().find(|table| lacks(table.usable_index())) {
        let columns = tracker.scope.iter().chain([&tracker.signature]);
        let columns: Vec<String> = columns.map(|name| names::identifier(name)).collect();
        let class = rule.bound.operator_class(&rule.objects);
        let (table, lacking) = (
            names::relation(tracker.relation),
            names::relation(lacking.oid),
        );
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!(
                "near_dup_track needs an index of ({}) on table {lacking}, made for threshold {} or a lower one",
                columns.join(", "),
                tracker.threshold
            ),
            &format!(
                "CREATE INDEX ON {table} USING neardup ({} {class});",
                columns.join(", ")
            ),
        );
    }
}

pgrx::extension_sql_file!(
    "../../sql/live/track.sql",
    name = "live_track",
    requires = [near_dup_track, "live_note"]
);
