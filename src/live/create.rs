//! The tables of a tracker.

use crate::live::access::OwnTables;
use crate::live::tracker::{Tables, Tracker};
use crate::live::{state, triggers};
use crate::pg::catalog::depend;
use crate::pg::checked::CreatedColumn;
use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::statement::{Connection, server_text};
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

/// The names of a tracker's tables, and where they are made.
pub struct TableNames {
    schema: pg_sys::Oid,
    /// UNLOGGED for an unlogged table: after a crash both are empty.
    kind: &'static str,
    bare: [String; 5],
}

impl TableNames {
    /// Returns the names of the tables beside `relation`; `clusters` is the bare name of the table of clusters.
    ///
    /// # Errors
    /// ERROR `duplicate_table` where an object of one of these names is in the way.
    pub fn new(relation: &Relation, clusters: &str) -> Self {
        // SAFETY: looks the table up in the catalog.
        let schema = unsafe { pg_sys::get_rel_namespace(relation.oid()) };
        let names = Self {
            schema,
            kind: match relation.persistence() {
                pg_sys::RELPERSISTENCE_UNLOGGED => "UNLOGGED TABLE",
                _ => "TABLE",
            },
            bare: ["", "log", "canonical", "queue", "state"].map(|suffix| match suffix {
                "" => clusters.to_owned(),
                suffix => names::derived(clusters, suffix),
            }),
        };
        for bare in &names.bare {
            if names.find(bare) != pg_sys::InvalidOid {
                names.in_the_way(bare);
            }
        }
        names
    }

    /// Returns the relation of that bare name; InvalidOid if there is none.
    fn find(&self, bare: &str) -> pg_sys::Oid {
        // SAFETY: the name is NUL-terminated.
        unsafe { pg_sys::get_relname_relid(server_text(bare).as_ptr(), self.schema) }
    }

    fn in_the_way(&self, bare: &str) -> ! {
        let name = names::qualified(self.schema, bare);
        raise(
            PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
            &format!("near_dup_track cannot make {name}, which exists already"),
            &format!(
                "If a table that was tracked has left it: DROP TABLE {name}; if a tracker keeps it, end that by near_dup_untrack before. Or name other clusters: clusters => 'other_clusters'."
            ),
        )
    }

    /// Makes the tables with the rights of the table's owner, but for the columns of canonical rows. `key` is the
    /// definition of columns of keys.
    pub fn create(
        &self,
        connection: &Connection,
        key: &str,
        exceptions: Option<pg_sys::Oid>,
    ) -> Tables {
        let kind = self.kind;
        let tables = self
            .bare
            .each_ref()
            .map(|bare| names::qualified(self.schema, bare));
        let [clusters, log, canonical, queue, state] = tables;
        let of_state = definitions(&state::columns());
        // Rows of the queue can be deleted also where it is published.
        connection.execute(&format!(
            "CREATE {kind} {clusters} (key {key} PRIMARY KEY, cluster bigint NOT NULL,
                 canonical {key} NOT NULL, similarity double precision);
             CREATE INDEX ON {clusters} (cluster);
             CREATE INDEX ON {clusters} (canonical);
             CREATE {kind} {log} (
                 number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                 at timestamptz NOT NULL, event text NOT NULL,
                 from_cluster bigint, to_cluster bigint, key {key},
                 similarity double precision, replaced {key});
             CREATE {kind} {canonical} ();
             CREATE {kind} {queue} (key {key});
             ALTER TABLE {queue} REPLICA IDENTITY FULL;
             CREATE {kind} {state} ({of_state}, PRIMARY KEY (singleton), CHECK (singleton))"
        ));
        let [clusters, log, canonical, queue, state] =
            self.bare.each_ref().map(|bare| self.find(bare));
        Tables {
            clusters,
            log,
            canonical,
            queue,
            state,
            exceptions,
        }
    }
}

fn definitions(columns: &[CreatedColumn]) -> String {
    let definitions = columns.iter().map(|column| {
        let not_null = if column.is_not_null { " NOT NULL" } else { "" };
        format!("{} {}{not_null}", column.name, column.type_.definition())
    });
    definitions.collect::<Vec<_>>().join(", ")
}

/// Gives the table of canonical rows its columns, and makes triggers and rights.
pub fn complete(connection: &Connection, tracker: &Tracker) {
    let columns = OwnTables::canonical_columns(tracker);
    let added = columns
        .iter()
        .map(|column| format!("ADD {}", definitions(std::slice::from_ref(column))));
    let added = added.collect::<Vec<_>>().join(", ");
    let canonical = tracker.canonical();
    connection.execute(&format!(
        "ALTER TABLE {canonical} {added}, ADD PRIMARY KEY (key)"
    ));
    triggers::create(connection, tracker, &names::bare(tracker.tables.clusters));
    grant(connection, tracker);
    follow_row_security(connection, tracker);
    renew_links(connection, tracker);
}

/// Makes the index in which canonical rows near others are found.
pub fn create_index(connection: &Connection, tracker: &Tracker) {
    let scope = tracker.of_scope(|number, _| format!("scope{number}, "));
    let of_kept = tracker.measure.of_kept();
    let objects = of_kept.kind.objects(tracker.note);
    connection.execute(&format!(
        "CREATE INDEX ON {} USING neardup ({scope}kept {})",
        tracker.canonical(),
        of_kept.bound.operator_class(&objects)
    ));
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
    let (clusters, log) = (tracker.clusters(), names::relation(tracker.tables.log));
    if let Some(roles) = roles {
        connection.execute(&format!("GRANT SELECT ON {clusters}, {log} TO {roles}"));
    }
}

/// Hides clusters and log from every role that does not see all rows of the table, once it has row-level
/// security.
fn follow_row_security(connection: &Connection, tracker: &Tracker) {
    let table = names::literal(&names::relation(tracker.relation));
    for readable in [tracker.clusters(), names::relation(tracker.tables.log)] {
        connection.execute(&format!(
            "ALTER TABLE {readable} ENABLE ROW LEVEL SECURITY;
             CREATE POLICY near_dup_track ON {readable} USING ((SELECT NOT
                 pg_catalog.row_security_active({table}::pg_catalog.regclass::pg_catalog.oid)))"
        ));
    }
}

/// Records that the tables of a linked tracker and its triggers go with the table of clusters when that is dropped,
/// triggers with the trigger for updates, and policies with the tracked table. A dump does not contain this.
pub fn renew_links(connection: &Connection, tracker: &Tracker) {
    let tables = &tracker.tables;
    let on_clusters = (pg_sys::RelationRelationId, tables.clusters);
    for table in [tables.log, tables.canonical, tables.queue, tables.state] {
        depend((pg_sys::RelationRelationId, table), on_clusters);
    }
    let tracked = Relation::open_table(tracker.relation);
    let updates =
        triggers::for_updates(tracker.note, &tracked, tables).map(|trigger| trigger.tgoid);
    for table in [Some(tracker.relation), tables.exceptions]
        .into_iter()
        .flatten()
    {
        let table = Relation::open_table(table);
        for trigger in triggers::noting(tracker.note, &table, tables) {
            let trigger = (pg_sys::TriggerRelationId, trigger.tgoid);
            depend(trigger, on_clusters);
            if let Some(updates) = updates.filter(|updates| *updates != trigger.1) {
                depend(trigger, (pg_sys::TriggerRelationId, updates));
            }
        }
    }
    let find = connection.prepare(POLICIES, &[pg_sys::OIDOID; 2]);
    let readable = [tables.clusters, tables.log].map(IntoDatum::into_datum);
    find.run(&readable, &mut |row| {
        if let (Some(catalog), Some(policy)) = (row.get(1), row.get(2)) {
            depend(
                (catalog, policy),
                (pg_sys::RelationRelationId, tracker.relation),
            );
        }
    });
}

/// The policies on clusters and log, with their catalog.
const POLICIES: &str = "SELECT p.tableoid, p.oid FROM pg_catalog.pg_policy p
    WHERE p.polrelid OPERATOR(pg_catalog.=) ANY (ARRAY[$1, $2])
        AND p.polname OPERATOR(pg_catalog.=) 'near_dup_track'::pg_catalog.name";
