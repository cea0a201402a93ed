//! The tables and triggers of a tracker.

use crate::guard::keys::define_keys;
use crate::live::shape::{Shape, TrackedColumn};
use crate::live::state;
use crate::live::tracker::{Tables, Tracker};
use crate::pg::catalog::depend;
use crate::pg::error::raise;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::statement::{Connection, server_text};
use crate::pg::{condition, names};
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

/// Makes a tracker's tables in the schema of its table, with the rights of the table's owner, and its triggers,
/// but for the index of [`create_index`]. `name` is the bare name of the table of clusters; the table has its
/// primary key in the columns `key`.
///
/// # Errors
/// ERROR `duplicate_table` where an object of one of their names is in the way.
pub fn create(connection: &Connection, name: &str, mut tracker: Tracker, key: &[i16]) -> Shape {
    let relation = tracker.relation;
    // SAFETY: looks the table up in the catalog.
    let (schema, persistence) = unsafe {
        let schema = pg_sys::get_rel_namespace(relation);
        (schema, pg_sys::get_rel_persistence(relation) as u8)
    };
    // UNLOGGED for an unlogged table: after a crash both are empty.
    let kind = match persistence {
        pg_sys::RELPERSISTENCE_UNLOGGED => "UNLOGGED TABLE",
        _ => "TABLE",
    };
    let tables = ["", "log", "canonical", "queue", "state"].map(|suffix| match suffix {
        "" => name.to_owned(),
        suffix => names::derived(name, suffix),
    });
    for bare in &tables {
        if find(schema, bare) != pg_sys::InvalidOid {
            in_the_way(schema, bare, "TABLE");
        }
    }
    let definition = key_definition(connection, relation, key, schema, name);
    let [clusters, log, canonical, queue, state] =
        tables.each_ref().map(|bare| names::qualified(schema, bare));
    // The columns of canonical rows are known when the order is. Rows of the queue can be deleted also where
    // it is published.
    connection.execute(&format!(
        "CREATE {kind} {clusters} (key {definition} PRIMARY KEY, cluster bigint NOT NULL,
             canonical {definition} NOT NULL, similarity double precision);
         CREATE INDEX ON {clusters} (cluster);
         CREATE INDEX ON {clusters} (canonical);
         CREATE {kind} {log} (
             number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
             at timestamptz NOT NULL, event text NOT NULL,
             from_cluster bigint, to_cluster bigint, key {definition},
             similarity double precision, replaced {definition});
         CREATE {kind} {canonical} ();
         CREATE {kind} {queue} (key {definition});
         ALTER TABLE {queue} REPLICA IDENTITY FULL;
         CREATE {kind} {state} ({})",
        state::COLUMNS
    ));
    tracker.tables = Tables::new(tables.map(|bare| find(schema, &bare)));
    let shape = Shape::of(connection, tracker);
    add_canonical_columns(connection, &shape, &definition);
    create_triggers(connection, &shape, name);
    grant(connection, &shape.tracker);
    follow_row_security(connection, &shape.tracker);
    renew_links(connection, &shape.tracker);
    shape
}

/// Returns the relation of that bare name in a schema; InvalidOid if there is none.
fn find(schema: pg_sys::Oid, bare: &str) -> pg_sys::Oid {
    // SAFETY: the name is NUL-terminated.
    unsafe { pg_sys::get_relname_relid(server_text(bare).as_ptr(), schema) }
}

fn in_the_way(schema: pg_sys::Oid, bare: &str, kind: &str) -> ! {
    let name = names::qualified(schema, bare);
    raise(
        PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
        &format!("near_dup_track cannot make {name}, which exists already"),
        &format!(
            "If a table that was tracked has left it: DROP {kind} {name}; if a tracker keeps it, end that by near_dup_untrack before. Or name other clusters: clusters => 'other_clusters'."
        ),
    )
}

/// Returns the definition of columns that hold keys; makes a row type for keys of several columns, unless a tracker
/// that has ended has left one.
fn key_definition(
    connection: &Connection,
    relation: pg_sys::Oid,
    key: &[i16],
    schema: pg_sys::Oid,
    name: &str,
) -> String {
    let bare = names::derived(name, "key");
    let (type_, row) = (names::qualified(schema, &bare), find(schema, &bare));
    if key.len() == 1 || row == pg_sys::InvalidOid {
        return define_keys(connection, relation, key, &type_);
    }
    let mut columns = (1..).zip(key);
    let behind_last = names::column(row, key.len() as i16 + 1);
    // SAFETY: looks the relation up in the catalog.
    let kind = unsafe { pg_sys::get_rel_relkind(row) } as u8;
    let is_of_keys = kind == pg_sys::RELKIND_COMPOSITE_TYPE
        && behind_last.is_none()
        && columns.all(|(number, &column)| {
            let definition = |relation, number| ColumnType::of(relation, number).definition();
            names::column(row, number).is_some()
                && definition(row, number) == definition(relation, column)
        });
    if !is_of_keys {
        in_the_way(schema, &bare, "TYPE");
    }
    type_
}

/// Gives the table of canonical rows its columns.
fn add_canonical_columns(connection: &Connection, shape: &Shape, key: &str) {
    let kept = shape.tracker.measure.kept_type();
    let mut columns =
        format!("ADD key {key} PRIMARY KEY, ADD cluster bigint NOT NULL, ADD kept {kept} NOT NULL");
    columns += &shape
        .of_scope(|number, column| format!(", ADD scope{number} {}", column.type_.definition()));
    for (number, term) in (1..).zip(&shape.order.terms) {
        columns += &format!(", ADD order{number} {}", term.type_.definition());
    }
    connection.execute(&format!("ALTER TABLE {} {columns}", shape.canonical()));
}

/// Makes the index in which canonical rows near others are found.
pub fn create_index(connection: &Connection, shape: &Shape) {
    let scope = shape.of_scope(|number, _| format!("scope{number}, "));
    let of_kept = shape.tracker.measure.of_kept();
    let objects = of_kept.kind.objects(shape.tracker.note);
    connection.execute(&format!(
        "CREATE INDEX ON {} USING neardup ({scope}kept {})",
        shape.canonical(),
        of_kept.bound.operator_class(&objects)
    ));
}

/// Makes the triggers that note changes.
fn create_triggers(connection: &Connection, shape: &Shape, name: &str) {
    let tracker = &shape.tracker;
    let (table, condition) = (shape.base(), condition::naming(&tracker.tables.all()));
    let changes = differs(shape) + &tracker.kept(&shape.order);
    let mut enable = Vec::new();
    let mut create = |kind: &str, suffix: &str, when: &str, for_each: &str, function: &str| {
        let trigger = names::identifier(&names::derived(name, suffix));
        let function = tracker.function(function);
        connection.execute(&format!(
            "CREATE {kind} {trigger} {when} ON {table} {for_each} WHEN ({condition}{})
                 EXECUTE FUNCTION {function}({})",
            if when == UPDATE { &changes } else { "" },
            tracker.arguments(&shape.order)
        ));
        enable.push(format!("ENABLE ALWAYS TRIGGER {trigger}"));
    };
    const INSERT_OR_DELETE: &str = "AFTER INSERT OR DELETE";
    const UPDATE: &str = "AFTER UPDATE";
    let (note, row) = ("near_dup_track", "FOR EACH ROW");
    create("TRIGGER", "note_rows", INSERT_OR_DELETE, row, note);
    create("TRIGGER", "note_updates", UPDATE, row, note);
    let statement = "FOR EACH STATEMENT";
    const TRUNCATE: &str = "AFTER TRUNCATE";
    create("TRIGGER", "note_truncate", TRUNCATE, statement, note);
    if tracker.is_immediate {
        // Triggers fire by their names, and a row has to be noted first. Names that are shortened are
        // shortened alike, for both have the same length.
        let (kind, deferred) = (
            "CONSTRAINT TRIGGER",
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
        );
        let refresh = "near_dup_refresh";
        create(kind, "sync_rows", INSERT_OR_DELETE, deferred, refresh);
        create(kind, "sync_updates", UPDATE, deferred, refresh);
    }
    // Logical replication fires no others.
    connection.execute(&format!("ALTER TABLE {table} {}", enable.join(", ")));
}

/// Returns the condition that an UPDATE changes a bit of a column that the tracker reads: values that
/// operators find equal can have different places in the order.
fn differs(shape: &Shape) -> String {
    let relation = shape.tracker.relation;
    let table = Relation::open_table(relation);
    let mut numbers = shape.order.columns.clone();
    numbers.insert(TrackedColumn::named(&table, &shape.tracker.column).number);
    let others = shape.scope.iter().chain(&shape.key.columns);
    numbers.extend(others.map(|column| column.number));
    let of = |version: &str| {
        let names = numbers
            .iter()
            .filter_map(|&number| names::column(relation, number));
        let columns = names.map(|name| format!("{version}.{}", names::identifier(&name)));
        columns.collect::<Vec<_>>().join(", ")
    };
    // Operators on two rows would be taken apart when a dump is restored.
    format!(
        " AND pg_catalog.record_image_ne(ROW({}), ROW({}))",
        of("OLD"),
        of("NEW")
    )
}

/// Grants the privilege to read clusters and log to all who may read the table.
fn grant(connection: &Connection, tracker: &Tracker) {
    let readers = connection.prepare(
        "SELECT pg_catalog.string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
             ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END, ', ')
         FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
         WHERE c.oid = $1 AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner",
        &[pg_sys::OIDOID],
    );
    let mut roles = None;
    readers.run(&[tracker.relation.into_datum()], &mut |row| {
        roles = row.name(1);
    });
    let Tables { clusters, log, .. } = tracker.tables;
    let (clusters, log) = (names::relation(clusters), names::relation(log));
    if let Some(roles) = roles {
        connection.execute(&format!("GRANT SELECT ON {clusters}, {log} TO {roles}"));
    }
}

/// Hides clusters and log from every role that does not see all rows of the table, once it has row-level
/// security.
fn follow_row_security(connection: &Connection, tracker: &Tracker) {
    let table = names::literal(&names::relation(tracker.relation));
    let Tables { clusters, log, .. } = tracker.tables;
    for readable in [clusters, log].map(names::relation) {
        connection.execute(&format!(
            "ALTER TABLE {readable} ENABLE ROW LEVEL SECURITY;
             CREATE POLICY near_dup_track ON {readable} USING ((SELECT NOT
                 pg_catalog.row_security_active({table}::pg_catalog.regclass::pg_catalog.oid)))"
        ));
    }
}

/// Records that tables and triggers go with the table of clusters when that is dropped, triggers with the
/// trigger that notes updates, and policies with the tracked table. A dump does not contain this.
pub fn renew_links(connection: &Connection, tracker: &Tracker) {
    let clusters = tracker.tables.clusters;
    let on_clusters = (pg_sys::RelationRelationId, clusters);
    let tables = tracker.tables.all().into_iter();
    for table in tables.filter(|table| *table != clusters) {
        depend((pg_sys::RelationRelationId, table), on_clusters);
    }
    let triggers = connection.prepare(TRIGGERS, &[pg_sys::OIDOID]);
    let triggers = triggers.oids(&[clusters.into_datum()]);
    for (number, &trigger) in triggers.iter().enumerate() {
        let trigger = (pg_sys::TriggerRelationId, trigger);
        depend(trigger, on_clusters);
        if number > 0 {
            depend(trigger, (pg_sys::TriggerRelationId, triggers[0]));
        }
    }
    let find = connection.prepare(POLICIES, &[pg_sys::OIDOID; 2]);
    let readable = [clusters, tracker.tables.log].map(IntoDatum::into_datum);
    find.run(&readable, &mut |row| {
        if let (Some(catalog), Some(policy)) = (row.get(1), row.get(2)) {
            let tracked = (pg_sys::RelationRelationId, tracker.relation);
            depend((catalog, policy), tracked);
        }
    });
}

/// The policies on clusters and log, with their catalog.
const POLICIES: &str = "SELECT p.tableoid, p.oid FROM pg_catalog.pg_policy p
    WHERE p.polrelid OPERATOR(pg_catalog.=) ANY (ARRAY[$1, $2])
        AND p.polname OPERATOR(pg_catalog.=) 'near_dup_track'::pg_catalog.name";

/// The triggers that name a table, the trigger that notes updates first.
const TRIGGERS: &str = "SELECT t.oid FROM pg_catalog.pg_trigger t
    WHERE t.tgparentid OPERATOR(pg_catalog.=) 0 AND t.oid OPERATOR(pg_catalog.=) ANY (
        SELECT d.objid FROM pg_catalog.pg_depend d
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
            AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) $1)
    ORDER BY t.tgdeferrable, t.tgtype OPERATOR(pg_catalog.&) 16::pg_catalog.int2 DESC";
