//! `near_dup_track` and `near_dup_untrack`: begin and end keeping clusters.

use crate::guard::columns::{column_number, only_key_column};
use crate::guard::exceptions::{VALID_EXCEPTIONS, open_exceptions};
use crate::guard::options::GuardOptions;
use crate::guard::row_condition::{RowCondition, parsed_condition};
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::kind::{COLUMN_TYPES, Kind};
use crate::live::create::{create_index, renew_links, share};
use crate::live::measure::Measure;
use crate::live::order::{Expression, Order};
use crate::live::refresh::{Refresh, rights_for};
use crate::live::tables::{self, OpenTables, Own, Tables};
use crate::live::tracker::{Tracker, note_function};
use crate::live::triggers::{self, for_updates, name_of};
use crate::options::{self, with_text};
use crate::pg::arrays::names_in;
use crate::pg::call::Call;
use crate::pg::encoding::in_utf8;
use crate::pg::error::{OrRaise, invalid, raise, wrong_type};
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::{OwnerRights, check_owner};
use crate::pg::statement::{Connection, server_text};
use crate::pg::varlena::Varlena;
use neardup::bands::MAX_BLOCKS;
use neardup::shingle::Shingling;
use pgrx::prelude::*;

/// Implements `near_dup_track(relation, column_name, threshold, keep, clusters, scope, key, condition, exceptions,
/// k, unit, fold)`: makes the tables of a tracker and its triggers, and computes the clusters. Returns the table of
/// clusters. Writers of the table wait meanwhile.
///
/// # Errors
/// `insufficient_privilege` unless the caller owns the table; `object_not_in_prerequisite_state` for a
/// table without a key, or without an index that serves the threshold; `invalid_object_definition` for an order or
/// a condition that is not immutable; `unique_violation` for a key of two rows; the errors of
/// [`requested_measure`], and of CREATE TABLE.
#[pg_extern(sql = false)]
fn near_dup_track(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Oid {
    // SAFETY: the call is running; its arguments are of the declared types.
    let (call, clusters) = unsafe {
        let call = Call::new(fcinfo);
        let clusters = call.optional_argument(4).map(|name| names::name(name));
        (call, clusters)
    };
    let relation = call.oid(0, "relation");
    check_owner(relation);
    check_table(relation);
    let mut connection = Connection::open();
    let table = names::relation(relation);
    connection.execute(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"));
    // Names in expressions are looked up as the caller does it.
    let mut tracker = requested(&call, &connection, relation);
    let rights = rights_for(relation);
    let clusters = clusters.unwrap_or_else(|| names::derived(&names::bare(relation), "clusters"));
    tables::create(&connection, &mut tracker, &clusters);
    triggers::create(&connection, &tracker, &clusters);
    share(&connection, &tracker);
    renew_links(&connection, &tracker);
    let own = OpenTables::open_for_refresh(&tracker);
    let mut first = Refresh::begin(&mut connection, &tracker);
    let changes = first.rebuild(false);
    first.end(changes[0]);
    drop(own);
    connection.release();
    create_index(&connection, &tracker);
    connection.close();
    rights.resign();
    tracker.tables.get(Own::Clusters)
}

/// Returns the tracker that a call of `near_dup_track` asks for, without its tables.
///
/// # Errors
/// ERROR `undefined_column`, `object_not_in_prerequisite_state` for a table without a key, and the errors of
/// [`requested_measure`], [`Order::named`], [`parsed_condition`], [`check_index`] and [`open_exceptions`].
fn requested(call: &Call, connection: &Connection, relation: pg_sys::Oid) -> Tracker {
    // SAFETY: the arguments are of the declared types.
    let (text, name) = unsafe {
        (
            |number| {
                let text = call.optional_argument(number);
                text.map(|text| in_utf8(&Varlena::detoast(text)))
            },
            |number| call.optional_argument(number).map(|name| names::name(name)),
        )
    };
    let column =
        |name: &String| Expression::column(relation, column_number(relation, &server_text(name)));
    let table = Relation::open_table(relation);
    let key = match name(6) {
        Some(key) => column(&key),
        None => Expression::column(relation, only_key_column(&table)),
    };
    key.equality();
    let value = column(&name(1).unwrap_or_default());
    let scope = call.optional_argument(5);
    // SAFETY: as above.
    let scope = scope.map(|scope| unsafe { names_in(scope) });
    let condition = text(7).map(|text| parsed_condition(connection, relation, &text));
    let exceptions = call.optional_argument(8);
    let exceptions = exceptions.map(|table| pg_sys::Oid::from(table.value() as u32));
    let tracker = Tracker {
        relation,
        owner: table.owner(),
        tables: Tables {
            exceptions,
            ..Tables::default()
        },
        measure: requested_measure(call, &value),
        scope: scope.iter().flatten().map(column).collect(),
        order: Order::named(connection, relation, text(3).as_deref(), &key),
        // SAFETY: the condition is over the table alone.
        condition: condition.map(|node| unsafe { Expression::new(node, relation) }),
        note: note_function(call.function()),
        key,
        value,
    };
    // SAFETY: as above.
    let condition = condition.and_then(|node| unsafe { RowCondition::new(node, &table) });
    check_index(&tracker, condition);
    if let Some(exceptions) = exceptions {
        if exceptions == relation {
            invalid("exceptions are in a table of their own", VALID_EXCEPTIONS);
        }
        let opened = open_exceptions(exceptions, &table, tracker.key.type_);
        opened.unwrap_or_else(|altered| altered.raise(VALID_EXCEPTIONS));
    }
    tracker
}

/// # Errors
/// ERROR `wrong_object_type` for relations that are no tables, and for tables with children by inheritance;
/// `feature_not_supported` for temporary ones.
fn check_table(relation: pg_sys::Oid) {
    let table = Relation::open_table(relation);
    // SAFETY: the table is open.
    let form = unsafe { &*(*table.as_ptr()).rd_rel };
    let is_partitioned = table.kind() == pg_sys::RELKIND_PARTITIONED_TABLE;
    let is_table = is_partitioned || table.kind() == pg_sys::RELKIND_RELATION;
    let is_temporary = table.persistence() == pg_sys::RELPERSISTENCE_TEMP;
    let wrong = PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE;
    let unsupported = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
    let obstacles = [
        (!is_table, wrong, "relation"),
        (form.relispartition, wrong, "partition"),
        (
            form.relhassubclass && !is_partitioned,
            wrong,
            "table with children",
        ),
        (is_temporary, unsupported, "temporary table"),
    ];
    let Some((_, code, what)) = obstacles.into_iter().find(|(is_so, ..)| *is_so) else {
        return;
    };
    let table = names::relation(relation);
    raise(
        code,
        &format!("near_dup_track cannot track {what} {table}"),
        "Tables and partitioned tables can be tracked.",
    )
}

/// Returns the measure by which a call compares the values of a column.
///
/// # Errors
/// ERROR `datatype_mismatch` for a column of another type, `invalid_parameter_value` for arguments out of
/// range, and for arguments that do not fit the type.
fn requested_measure(call: &Call, column: &Expression) -> Measure {
    let (name, type_name) = (&column.sql, column.type_.name());
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
    let mut cut = options::cut_arguments(call, 9);
    let shingling =
        (kind == Kind::Documents).then(|| cut.try_fold(Shingling::default(), with_text).or_raise());
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
/// ERROR `object_not_in_prerequisite_state` if a table with rows lacks an index that finds near values within the scope.
fn check_index(tracker: &Tracker, condition: Option<RowCondition>) {
    let measure = &tracker.measure;
    let name = |column: &Expression| {
        server_text(&names::column(tracker.relation, column.number).unwrap_or_default())
    };
    let rule = Rule {
        options: GuardOptions {
            column: name(&tracker.value),
            bound: measure.threshold().to_string(),
            scope: tracker.scope.iter().map(name).collect(),
            condition,
            ..GuardOptions::default()
        },
        kind: measure.kind,
        bound: measure.bound,
        objects: measure.kind.objects(tracker.note),
    };
    for table in rule.tables(tracker.relation, Span::ALWAYS) {
        table.check_index(&rule, "near_dup_track", tracker.scope.len());
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
    let connection = Connection::open();
    // The objects that the triggers name are dropped with the rights of the table's owner, whoever calls.
    let rights = OwnerRights::assume(tracker.owner);
    renew_links(&connection, &tracker);
    let table = Relation::open_table(tracker.relation);
    let trigger = for_updates(tracker.note, &table, &tracker.tables).map(name_of);
    // An open table cannot be altered.
    drop(table);
    if let Some(trigger) = trigger {
        let table = names::relation(tracker.relation);
        let trigger = names::identifier(&trigger);
        connection.execute(&format!("DROP TRIGGER {trigger} ON {table}"));
    }
    for table in [
        tracker.table(Own::Canonical),
        tracker.table(Own::Queue),
        tracker.table(Own::State),
    ] {
        // Others' objects may depend on them.
        connection.execute(&format!("DROP TABLE {table} CASCADE"));
    }
    connection.close();
    rights.resign();
}

pgrx::extension_sql_file!("../../sql/live/untrack.sql", name = "live_untrack");

pgrx::extension_sql_file!("../../sql/live/track.sql", name = "live_track");
