//! `near_dup_track` and `near_dup_untrack`: begin and end keeping clusters.

use crate::guard::table::SearchedTable;
use crate::guard::window::Span;
use crate::index::kind::{COLUMN_TYPES, Kind};
use crate::live::access::{OwnTables, check_tables, lock, rights_for};
use crate::live::create::{create, create_index, renew_links};
use crate::live::leaves::LeafTable;
use crate::live::measure::Measure;
use crate::live::order::Order;
use crate::live::refresh::Refresh;
use crate::live::shape::TrackedColumn;
use crate::live::state::State;
use crate::live::tracker::{Tables, Tracker, name_of, note_function, note_trigger, rule};
use crate::options::{self, with_text};
use crate::pg::arrays::names_in;
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, invalid, not_ready, raise, wrong_type};
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::{OwnerRights, check_owner};
use crate::pg::statement::{Connection, Snapshot};
use crate::pg::text::Text;
use neardup::bands::{LOWEST_THRESHOLD, MAX_BLOCKS};
use neardup::shingle::Shingling;
use pgrx::prelude::*;
use std::time::Instant;

/// Implements `near_dup_track(relation, column_name, threshold, keep, clusters, scope, immediate, k, unit,
/// fold)`: makes the tables of a tracker and its triggers, and computes the clusters. Returns the table of
/// clusters. Writers of the table wait meanwhile.
///
/// # Errors
/// `insufficient_privilege` unless the caller owns the table; `object_not_in_prerequisite_state` for a
/// table without a primary key, or without an index that serves the threshold;
/// `invalid_object_definition` for an order that is not immutable; the errors of [`requested_measure`], and
/// of CREATE TABLE.
#[pg_extern(sql = false)]
fn near_dup_track(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Oid {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    let relation = pg_sys::Oid::from(call.argument(0, "relation").value() as u32);
    check_owner(relation);
    check_table(relation);
    let (_, key) = Relation::open_table(relation)
        .primary_key()
        .unwrap_or_else(|| lacks_key(relation));
    let mut tracker = requested(&call, relation);
    check_index(&tracker);
    // SAFETY: the arguments are a text and a name.
    let (keep, name) = unsafe {
        let keep = call.optional_argument(3).map(|keep| Text::from_raw(keep));
        let name = call.optional_argument(4).map(|name| names::name(name));
        (keep, name)
    };
    let keep = keep.map(|keep| String::from_utf8_lossy(&keep).into_owned());
    let name = name.unwrap_or_else(|| names::derived(&names::bare(relation), "clusters"));

    let mut connection = Connection::open();
    let table = names::relation(relation);
    connection.execute(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"));
    let columns = key.iter().map(|&number| names::column(relation, number));
    let columns: Vec<String> = columns
        .flatten()
        .map(|name| names::identifier(&name))
        .collect();
    // Names in the list are looked up as the caller does it.
    let order = Order::prepare(&connection, relation, keep.as_deref(), &columns.join(", "));
    let rights = rights_for(relation);
    tracker.keep = Order::of_query(relation, &order).list();
    drop(order);
    let shape = create(&connection, &name, tracker, &key);
    lock(&connection, &shape.tracker);
    let leaves = LeafTable::all_of(&shape.tracker);
    connection.read_under(Snapshot::take());
    let (state, _) = State::begin(&connection, &shape.tracker, leaves);
    let first = Refresh {
        connection: &connection,
        shape: &shape,
        state,
        started: Instant::now(),
    };
    let own = OwnTables::open(&shape);
    first.rebuild(false);
    drop(own);
    connection.release();
    create_index(&connection, &shape);
    connection.close();
    rights.resign();
    shape.tracker.tables.clusters
}

/// Returns the tracker that a call asks for, without its tables.
///
/// # Errors
/// ERROR `undefined_column`, and the errors of [`requested_measure`].
fn requested(call: &Call, relation: pg_sys::Oid) -> Tracker {
    // SAFETY: the arguments are of the declared types.
    unsafe {
        let name = names::name(call.argument(1, "column_name"));
        let column = TrackedColumn::named(&Relation::open_table(relation), &name);
        let scope = call.optional_argument(5).map(|scope| names_in(scope));
        Tracker {
            relation,
            tables: Tables::default(),
            measure: requested_measure(call, &column),
            column: name,
            keep: String::new(),
            scope: scope.unwrap_or_default(),
            is_immediate: call.argument(6, "immediate").value() != 0,
            note: note_function(call.function()),
        }
    }
}

/// # Errors
/// ERROR `wrong_object_type` for relations that are no tables, and for tables with children by inheritance;
/// `feature_not_supported` for temporary ones.
fn check_table(relation: pg_sys::Oid) {
    let table = Relation::open_table(relation);
    // SAFETY: the table is open.
    let form = unsafe { &*(*table.as_ptr()).rd_rel };
    let is_partitioned = table.kind() == pg_sys::RELKIND_PARTITIONED_TABLE;
    let is_temporary = form.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
    let mut code = PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE;
    let what = match is_partitioned || table.kind() == pg_sys::RELKIND_RELATION {
        false => "relation",
        true if form.relispartition => "partition",
        true if form.relhassubclass && !is_partitioned => "table with children",
        true if is_temporary => {
            code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
            "temporary table"
        }
        true => return,
    };
    let table = names::relation(relation);
    raise(
        code,
        &format!("near_dup_track cannot track {what} {table}"),
        "Tables and partitioned tables can be tracked.",
    )
}

/// # Errors
/// ERROR `object_not_in_prerequisite_state`.
fn lacks_key(relation: pg_sys::Oid) -> ! {
    let table = names::relation(relation);
    not_ready(
        &format!("near_dup_track needs a primary key on table {table}"),
        &format!("ALTER TABLE {table} ADD PRIMARY KEY (id);"),
    )
}

/// Returns the measure by which a call compares the values of a column.
///
/// # Errors
/// ERROR `datatype_mismatch` for a column of another type, `invalid_parameter_value` for arguments out of
/// range, and for arguments that do not fit the type.
fn requested_measure(call: &Call, column: &TrackedColumn) -> Measure {
    let (name, type_name) = (&column.name, column.type_.name());
    let Some(kind) = Kind::of_type(column.type_.type_, call.schema()) else {
        wrong_type(
            &format!("near_dup_track cannot compare column {name} of type {type_name}"),
            COLUMN_TYPES,
        );
    };
    let threshold = match kind {
        Kind::Hamming => {
            let distance = options::distance_argument(call, 2) as i32;
            options::within("threshold", distance, 0, MAX_BLOCKS as i32 - 1).into()
        }
        _ => options::threshold_argument(call, 2),
    };
    let mut cut = options::cut_arguments(call, 7);
    let shingling =
        (kind == Kind::Documents).then(|| cut.try_fold(Shingling::default(), with_text).or_raise());
    if shingling.is_some() && threshold < LOWEST_THRESHOLD {
        invalid(
            &format!("threshold {threshold} is out of range for a column of documents"),
            &format!(
                "Valid values are {LOWEST_THRESHOLD} to 1. Signatures can be tracked at every threshold."
            ),
        );
    }
    if shingling.is_none() && cut.next().is_some() {
        invalid(
            &format!("k, unit and fold do not fit column {name} of type {type_name}"),
            "They say how documents in a column of type text are cut into shingles.",
        );
    }
    let measure = Measure::new(kind, threshold, shingling, call.schema());
    measure.expect("the arguments have been checked")
}

/// # Errors
/// ERROR `object_not_in_prerequisite_state` where a table with rows lacks an index that finds near values
/// within the scope.
fn check_index(tracker: &Tracker) {
    let table = Relation::open_table(tracker.relation);
    for name in &tracker.scope {
        TrackedColumn::named(&table, name).equality();
    }
    let names = tracker.scope.iter().map(String::as_str);
    let rule = rule(tracker, &tracker.measure, &tracker.column, names);
    let scope = tracker.scope.len();
    let tables = rule.tables(tracker.relation, Span::ALWAYS);
    let lacks = |table: &&SearchedTable| {
        let index = table.index.as_ref();
        index.is_none_or(|index| index.scope.len() < scope)
    };
    if let Some(lacking) = tables.iter().find(lacks) {
        let columns = tracker.scope.iter().chain([&tracker.column]);
        let columns: Vec<String> = columns.map(|name| names::identifier(name)).collect();
        let class = rule.bound.operator_class(&rule.objects);
        let (table, lacking) = (
            names::relation(tracker.relation),
            names::relation(lacking.oid),
        );
        not_ready(
            &format!(
                "near_dup_track needs an index of ({}) on table {lacking} that serves threshold {}",
                columns.join(", "),
                tracker.measure.threshold()
            ),
            &format!(
                "CREATE INDEX ON {table} USING neardup ({} {class});",
                columns.join(", ")
            ),
        );
    }
}

/// Implements `near_dup_untrack(clusters)`: drops the triggers and all tables of a tracker but the clusters
/// and their log, which stay as they are.
///
/// # Errors
/// `object_not_in_prerequisite_state` for a table that is not kept, `insufficient_privilege` unless the
/// caller owns the tracked table.
#[pg_extern(sql = false)]
fn near_dup_untrack(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    let tracker = Tracker::of_argument(&call);
    check_tables(tracker.relation, &tracker.tables);
    let connection = Connection::open();
    // The objects that the triggers name are dropped with the rights of the table's owner, whoever calls.
    let table = Relation::open_table(tracker.relation);
    let rights = OwnerRights::assume(table.owner());
    renew_links(&connection, &tracker);
    let updates = pg_sys::TRIGGER_TYPE_UPDATE;
    let trigger = note_trigger(tracker.note, &table, tracker.tables, updates).map(name_of);
    // An open table cannot be altered.
    drop(table);
    if let Some(trigger) = trigger {
        let (trigger, table) = (
            names::identifier(&trigger),
            names::relation(tracker.relation),
        );
        connection.execute(&format!("DROP TRIGGER {trigger} ON {table}"));
    }
    let tables = tracker.tables;
    for table in [tables.canonical, tables.queue, tables.state] {
        // Others' objects may depend on them.
        connection.execute(&format!("DROP TABLE {} CASCADE", names::relation(table)));
    }
    connection.close();
    rights.resign();
}

pgrx::extension_sql_file!("../../sql/live/untrack.sql", name = "live_untrack");

pgrx::extension_sql_file!("../../sql/live/track.sql", name = "live_track");
