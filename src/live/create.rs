//! The tables and triggers of a tracker.

use crate::live::shape::{Shape, TrackedColumn, TrackedKey, fields};
use crate::live::state;
use crate::live::tracker::{Tables, Tracker};
use crate::pg::catalog::depend;
use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::statement::{Connection, server_text};
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

/// Makes a tracker's tables in the schema of its table, with the rights of the table's owner.
pub struct Creation<'a> {
    connection: &'a Connection,
    /// The bare name of the table of clusters.
    name: &'a str,
    tracker: Tracker,
    columns: Vec<TrackedColumn>,
    schema: pg_sys::Oid,
    /// UNLOGGED for an unlogged table: after a crash both are empty.
    persistence: &'static str,
}

impl<'a> Creation<'a> {
    /// Returns the creation; `columns` are the columns of the table's primary key.
    pub fn new(
        connection: &'a Connection,
        name: &'a str,
        tracker: Tracker,
        columns: Vec<TrackedColumn>,
    ) -> Self {
        // SAFETY: looks the table up in the catalog.
        let (schema, persistence) = unsafe {
            let schema = pg_sys::get_rel_namespace(tracker.relation);
            (schema, pg_sys::get_rel_persistence(tracker.relation) as u8)
        };
        Self {
            connection,
            name,
            tracker,
            columns,
            schema,
            persistence: match persistence {
                pg_sys::RELPERSISTENCE_UNLOGGED => "UNLOGGED",
                _ => "",
            },
        }
    }

    /// Makes tables and triggers, but for the index of [`create_index`].
    ///
    /// # Errors
    /// ERROR `duplicate_table` where an object of one of their names is in the way.
    pub fn run(mut self) -> Shape {
        self.check_names();
        let key_type = self.key_type();
        let definition = match &self.columns[..] {
            [column] => column.definition.clone(),
            _ => key_type.clone(),
        };
        self.tracker.tables = self.create_tables(&definition);
        let row = self.oid(&names::derived(self.name, "key"));
        let key = TrackedKey {
            fields: fields(row, &self.columns),
            columns: self.columns,
            type_: key_type,
        };
        let shape = Shape::new(self.connection, self.tracker, key);
        add_canonical_columns(self.connection, &shape, &definition);
        create_triggers(self.connection, &shape, self.name);
        grant(self.connection, &shape.tracker);
        follow_row_security(self.connection, &shape.tracker);
        renew_links(self.connection, &shape.tracker);
        shape
    }

    /// Returns the type of the columns that hold keys; makes one for keys of several columns.
    fn key_type(&self) -> String {
        if let [column] = &self.columns[..] {
            return column.type_name.clone();
        }
        let bare = names::derived(self.name, "key");
        let name = names::qualified(self.schema, &bare);
        let known = self.oid(&bare);
        if known != pg_sys::InvalidOid {
            if !self.is_of_keys(known) {
                self.refuse(&bare, "TYPE");
            }
            return name;
        }
        let columns = self.columns.iter();
        let columns: Vec<String> = columns
            .map(|column| format!("{} {}", column.name, column.definition))
            .collect();
        self.connection
            .execute(&format!("CREATE TYPE {name} AS ({})", columns.join(", ")));
        name
    }

    /// Returns whether a row type, left by a tracker that has ended, has columns of the key's types.
    fn is_of_keys(&self, row: pg_sys::Oid) -> bool {
        let mut columns = (1..).zip(&self.columns);
        let behind_last = self.columns.len() as i16 + 1;
        // SAFETY: looks the relation up in the catalog.
        let is_row_type =
            unsafe { pg_sys::get_rel_relkind(row) } as u8 == pg_sys::RELKIND_COMPOSITE_TYPE;
        is_row_type
            && TrackedColumn::find(row, behind_last).is_none()
            && columns.all(|(number, column)| {
                let field = TrackedColumn::find(row, number);
                field.is_some_and(|field| field.definition == column.definition)
            })
    }

    /// # Errors
    /// ERROR `duplicate_table` where a table is in the way.
    fn check_names(&self) {
        let suffixed = ["log", "queue", "state", "canonical"].iter();
        let suffixed = suffixed.map(|suffix| names::derived(self.name, suffix));
        for bare in std::iter::once(self.name.to_owned()).chain(suffixed) {
            if self.oid(&bare) != pg_sys::InvalidOid {
                self.refuse(&bare, "TABLE");
            }
        }
    }

    fn refuse(&self, bare: &str, kind: &str) -> ! {
        let name = names::qualified(self.schema, bare);
        raise(
            PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
            &format!("near_dup_track cannot make {name}, which exists already"),
            &format!(
                "If a table that was tracked has left it: DROP {kind} {name}; if a tracker keeps it, end that by near_dup_untrack before. Or name other clusters: clusters => 'other_clusters'."
            ),
        )
    }

    fn create_tables(&self, key: &str) -> Tables {
        let persistence = self.persistence;
        let clusters = names::qualified(self.schema, self.name);
        self.connection.execute(&format!(
            "CREATE {persistence} TABLE {clusters} (key {key} PRIMARY KEY, cluster bigint NOT NULL,
                 canonical {key} NOT NULL, similarity double precision)"
        ));
        self.connection
            .execute(&format!("CREATE INDEX ON {clusters} (cluster)"));
        self.connection
            .execute(&format!("CREATE INDEX ON {clusters} (canonical)"));
        let create = |suffix: &str, definition: &dyn Fn(&str) -> String| {
            let bare = names::derived(self.name, suffix);
            self.connection
                .execute(&definition(&names::qualified(self.schema, &bare)));
            self.oid(&bare)
        };
        Tables {
            clusters: self.oid(self.name),
            log: create("log", &|table| {
                format!(
                    "CREATE {persistence} TABLE {table} (
                         number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                         at timestamptz NOT NULL, event text NOT NULL,
                         from_cluster bigint, to_cluster bigint, key {key},
                         similarity double precision, replaced {key})"
                )
            }),
            queue: create("queue", &|table| {
                // Its rows can be deleted also where the table is published.
                format!(
                    "CREATE {persistence} TABLE {table} (key {key});
                     ALTER TABLE {table} REPLICA IDENTITY FULL"
                )
            }),
            state: create("state", &|table| state::definition(table, persistence)),
            // Its columns are known when the order is.
            canonical: create("canonical", &|table| {
                format!("CREATE {persistence} TABLE {table} ()")
            }),
        }
    }

    fn oid(&self, name: &str) -> pg_sys::Oid {
        // SAFETY: the name is NUL-terminated.
        unsafe { pg_sys::get_relname_relid(server_text(name).as_ptr(), self.schema) }
    }
}

/// Gives the table of canonical rows its columns.
fn add_canonical_columns(connection: &Connection, shape: &Shape, key: &str) {
    let kept = shape.tracker.measure.kept_type();
    let mut columns =
        format!("ADD key {key} PRIMARY KEY, ADD cluster bigint NOT NULL, ADD kept {kept} NOT NULL");
    for (number, column) in (1..).zip(&shape.scope) {
        columns += &format!(", ADD scope{number} {}", column.definition);
    }
    for (number, term) in (1..).zip(&shape.order.terms) {
        columns += &format!(", ADD order{number} {}", term.column);
    }
    connection.execute(&format!("ALTER TABLE {} {columns}", shape.canonical()));
}

/// Makes the index in which canonical rows near others are found.
pub fn create_index(connection: &Connection, shape: &Shape) {
    let scope = (1..=shape.scope.len()).map(|number| format!("scope{number}, "));
    let of_kept = shape.tracker.measure.of_kept();
    let objects = of_kept.kind.objects(shape.tracker.function);
    connection.execute(&format!(
        "CREATE INDEX ON {} USING neardup ({}kept {})",
        shape.canonical(),
        scope.collect::<String>(),
        of_kept.bound.operator_class(&objects)
    ));
}

/// Makes the triggers that note changes.
fn create_triggers(connection: &Connection, shape: &Shape, name: &str) {
    let tracker = &shape.tracker;
    let (table, condition) = (shape.base(), tracker.tables.condition());
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
    create(
        "TRIGGER",
        "note_truncate",
        "AFTER TRUNCATE",
        statement,
        note,
    );
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
    let table = Relation::open_table(shape.tracker.relation);
    let column = TrackedColumn::named(&table, &shape.tracker.column).number;
    let mut numbers = shape.order.columns.clone();
    numbers.insert(column);
    numbers.extend(
        shape
            .scope
            .iter()
            .chain(&shape.key.columns)
            .map(|column| column.number),
    );
    let columns: Vec<String> = numbers
        .iter()
        .filter_map(|&number| names::column(table.oid(), number))
        .map(|name| names::identifier(&name))
        .collect();
    let of = |version: &str| {
        let columns = columns.iter().map(|column| format!("{version}.{column}"));
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
        "SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
             ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END
         FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
         WHERE c.oid = $1 AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner",
        &[pg_sys::OIDOID],
    );
    let mut roles = Vec::new();
    readers.run(&[tracker.relation.into_datum()], &mut |row| {
        roles.extend(row.name(1))
    });
    let Tables { clusters, log, .. } = tracker.tables;
    let (clusters, log) = (names::relation(clusters), names::relation(log));
    for role in roles {
        connection.execute(&format!("GRANT SELECT ON {clusters}, {log} TO {role}"));
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
    let find = connection.prepare(TRIGGERS, &[pg_sys::OIDOID]);
    let mut triggers = Vec::new();
    find.run(&[clusters.into_datum()], &mut |row| {
        triggers.extend(row.get::<pg_sys::Oid>(1));
    });
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
