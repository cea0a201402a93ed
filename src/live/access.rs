//! Access to a tracker: the rights of a refresh, and its locks.

use crate::live::tracker::{Tables, Tracker};
use crate::pg::error::{not_ready, unsupported};
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::OwnerRights;
use crate::pg::statement::Connection;
use pgrx::pg_sys;

/// Returns the rights of a table's owner, with the settings of a refresh.
///
/// # Errors
/// ERROR `feature_not_supported` where rows of the table are hidden.
pub fn rights_for(relation: pg_sys::Oid) -> OwnerRights {
    let table = Relation::open_table(relation);
    // SAFETY: the table is open.
    if unsafe { (*(*table.as_ptr()).rd_rel).relrowsecurity } {
        unsupported(
            &format!(
                "clusters would show rows that row-level security of table {} hides",
                names::relation(relation)
            ),
            "Copy keys and signatures by a trigger into a table of their own, track that one, and let a policy look up the rows: CREATE POLICY own_rows ON its_clusters AS RESTRICTIVE USING (EXISTS (SELECT FROM this_table WHERE id = key)).",
        );
    }
    let rights = OwnerRights::assume(table.owner());
    rights.keep_texts();
    // Plans that are made for few rows are disliked by their cost, not slow.
    rights.set(c"jit", c"off");
    rights
}

/// Checks that the tables of a tracker belong to the owner of the tracked table.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state`.
pub fn check_tables(tracked: pg_sys::Oid, tables: &Tables) {
    let others: Vec<_> = tables.of_others(tracked).map(names::relation).collect();
    let [other, ..] = &others[..] else {
        return;
    };
    let owner = names::role(Relation::open_table(tracked).owner());
    let commands = others
        .iter()
        .map(|other| format!("ALTER TABLE {other} OWNER TO {owner};"));
    not_ready(
        &format!("{other} has another owner than the table that near_dup_track tracks"),
        &format!(
            "Give all tables of the tracker the same owner: {}",
            commands.collect::<Vec<_>>().join(" ")
        ),
    );
}

/// Locks a tracker against other refreshes until the end of the transaction, its table and leaves first.
pub fn lock(connection: &Connection, tracker: &Tracker) {
    let table = names::relation(tracker.relation);
    let lock = format!("LOCK TABLE {table} IN ACCESS SHARE MODE");
    connection.prepare_kept(&lock, &[]).execute(&[]);
    let state = names::relation(tracker.tables.state);
    let lock = connection.prepare_kept(&format!("SELECT FROM {state} FOR UPDATE"), &[]);
    if lock.execute(&[]) == 0 {
        connection.execute(&format!(
            "INSERT INTO {state} (next_cluster, rows) VALUES (1, 0) ON CONFLICT DO NOTHING"
        ));
        lock.execute(&[]);
    }
}
