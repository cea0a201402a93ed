//! `near_dup_track` starts to keep clusters up to date, and `near_dup_untrack` stops it.

use crate::collection::matches::check_threshold;
use crate::guard::options::GuardOptions;
use crate::guard::pair_table::{VALID_EXCEPTIONS, open_exceptions};
use crate::guard::row_condition::{RowCondition, parsed_condition};
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::bound::Bound;
use crate::live::create::{create_index, renew_links, share};
use crate::live::measure::Measure;
use crate::live::order::{Expression, Order};
use crate::live::refresh::{Refresh, rights_for};
use crate::live::tables::{self, OpenTables};
use crate::live::tracker::{Tables, Tracker, TrackerTable, note_function};
use crate::live::triggers;
use crate::options::{self, with_text};
use crate::pg::prelude::*;
use crate::pg::rights::{OwnerRights, check_owner};
use crate::pg::statement::server_text;
use pgrx::prelude::*;

/// Implements `near_dup_track(relation, column_name, threshold, keep, clusters, scope, key, condition, exceptions, k,
/// unit, fold)`: creates the tables and triggers of a tracker, and computes the clusters. Returns the clusters table.
/// Blocks writers of the tracked table in the meantime.
///
/// # Errors
/// `insufficient_privilege` unless the caller owns the table; `invalid_object_definition` for an order or a condition
/// that is not immutable; `unique_violation` if two rows have the same key; the errors of [`requested`] and of CREATE
/// TABLE.
#[pg_extern(sql = false)]
fn near_dup_track(call: Call) -> pg_sys::Oid {
    let relation = call.oid(0, "relation");
    check_table(relation);
    // The table is locked now, so its owner stays.
    check_owner(relation);
    let mut connection = Connection::open();
    let table = names::relation(relation);
    connection.execute(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"));
    // Before the owner's rights are assumed, so that names are looked up on the caller's search_path.
    let mut tracker = requested(&call, &connection, relation);
    let rights = rights_for(relation);
    let clusters = call.name(4);
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
    tracker.tables.get(TrackerTable::Clusters)
}

/// Returns the tracker that a call to `near_dup_track` requests, without its own tables.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state` for a table without a key or a usable index, `invalid_parameter_value` for
/// arguments out of range, and the errors of [`names::column_number`], [`Rule::new`], [`Order::named`], [`parsed_condition`]
/// and [`open_exceptions`].
fn requested(call: &Call, connection: &Connection, relation: pg_sys::Oid) -> Tracker {
    let (keep, condition) = (call.text(3), call.text(7));
    let (value, key) = (call.name(1).unwrap_or_default(), call.name(6));
    let column = |name: &String| {
        Expression::column(relation, names::column_number(relation, &server_text(name)))
    };
    let table = Relation::open_table(relation);
    let key = match key {
        Some(key) => column(&key),
        None => Expression::column(relation, table.only_key_column()),
    };
    key.equality();
    let scope = call.names(5);
    let condition = condition.map(|text| parsed_condition(connection, relation, &text));
    let exceptions = call.optional(8);
    let shingling = options::cut_arguments(call, 9).try_fold(None, |cut: Option<_>, text| {
        with_text(cut.unwrap_or_default(), text).map(Some)
    });
    let options = GuardOptions {
        column: server_text(&value),
        bound: call.get::<f64>(2, "threshold").to_string(),
        shingling: shingling.or_raise(),
        scope: scope.iter().map(|name| server_text(name)).collect(),
        // SAFETY: the condition is over the table alone.
        condition: condition.and_then(|node| unsafe { RowCondition::new(node, &table) }),
        ..GuardOptions::default()
    };
    let rule = Rule::new(&table, options, call.function());
    let tracker = Tracker {
        relation,
        owner: table.owner(),
        tables: Tables {
            exceptions,
            ..Tables::default()
        },
        measure: Measure {
            kind: rule.kind,
            bound: rule.bound,
            schema: call.schema(),
        },
        value: column(&value),
        scope: scope.iter().map(column).collect(),
        order: Order::named(connection, relation, keep.as_deref(), &key),
        // SAFETY: as above.
        condition: condition.map(|node| unsafe { Expression::new(node, relation) }),
        note: note_function(call.function()),
        key,
    };
    if let Bound::Resemblance(threshold, _) | Bound::Share(threshold) = rule.bound {
        check_threshold(threshold);
    }
    rule.tables(relation, Span::ALWAYS, "near_dup_track", scope.len());
    if let Some(exceptions) = exceptions {
        if exceptions == relation {
            invalid("exceptions must be in a separate table", VALID_EXCEPTIONS);
        }
        let opened = open_exceptions(exceptions, &table, tracker.key.type_);
        opened.unwrap_or_else(|altered| altered.raise(VALID_EXCEPTIONS));
    }
    tracker
}

/// Checks that `relation` can be tracked.
///
/// # Errors
/// ERROR `wrong_object_type` unless the relation is a table that is not a partition; `feature_not_supported` for
/// temporary tables.
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

/// Implements `near_dup_untrack(clusters)`: drops the triggers and tables of a tracker, except the clusters and their
/// log.
///
/// # Errors
/// `object_not_in_prerequisite_state` for a table that no tracker keeps, `insufficient_privilege` unless the caller
/// owns the tracked table.
#[pg_extern(sql = false)]
fn near_dup_untrack(call: Call) {
    use TrackerTable::{Canonical, Queue, State};
    let tracker = Tracker::of_argument(&call);
    let connection = Connection::open();
    // The objects that the triggers name are dropped with the rights of the table's owner, whoever calls.
    let rights = OwnerRights::assume(tracker.owner);
    rights.set(c"client_min_messages", c"warning");
    // The lock that dropping the triggers takes comes first, as in a refresh.
    // SAFETY: a transaction is running.
    unsafe { pg_sys::LockRelationOid(tracker.relation, pg_sys::AccessExclusiveLock as i32) };
    for table in [Canonical, Queue, State] {
        // The triggers depend on these tables, and objects of other users may depend on them too.
        connection.execute(&format!("DROP TABLE {} CASCADE", tracker.table(table)));
    }
    connection.close();
    rights.resign();
}

pgrx::extension_sql_file!("../../sql/live/untrack.sql", name = "live_untrack");

pgrx::extension_sql_file!("../../sql/live/track.sql", name = "live_track");
