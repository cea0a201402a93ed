//! Access to a tracker: the rights of a refresh, and its locks.

use crate::live::state::State;
use crate::live::tracker::Tracker;
use crate::pg::error::{raise, unsupported};
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::OwnerRights;
use crate::pg::statement::Connection;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Returns the rights of a table's owner, with the settings of a refresh.
///
/// # Errors
/// ERROR `feature_not_supported` where rows of the table are hidden.
pub fn rights_for(relation: pg_sys::Oid) -> OwnerRights {
    let table = Relation::open_table(relation);
    // SAFETY: the table is open.
    if unsafe { (*(*table.as_ptr()).rd_rel).relrowsecurity } {
        refuse_row_security(relation);
    }
    let rights = OwnerRights::assume(table.owner());
    rights.keep_texts();
    // Plans that are made for few rows are disliked by their cost, not slow.
    rights.set(c"jit", c"off");
    rights
}

/// # Errors
/// ERROR `object_not_in_prerequisite_state` where a tracker's tables belong to somebody else.
pub fn check_tables(tracker: &Tracker) {
    let others: Vec<_> = tracker.tables_of_others().map(names::relation).collect();
    let [other, ..] = &others[..] else {
        return;
    };
    let owner = names::role(Relation::open_table(tracker.relation).owner());
    let commands = others
        .iter()
        .map(|other| format!("ALTER TABLE {other} OWNER TO {owner};"));
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        &format!("{other} has another owner than the table that near_dup_track tracks"),
        &format!(
            "Give all tables of the tracker the same owner: {}",
            commands.collect::<Vec<_>>().join(" ")
        ),
    );
}

/// # Errors
/// ERROR `feature_not_supported`.
fn refuse_row_security(relation: pg_sys::Oid) -> ! {
    unsupported(
        &format!(
            "clusters would show rows that row-level security of table {} hides",
            names::relation(relation)
        ),
        "Copy keys and signatures by a trigger into a table of their own, track that one, and let a policy look up the rows: CREATE POLICY own_rows ON its_clusters AS RESTRICTIVE USING (EXISTS (SELECT FROM this_table WHERE id = key)).",
    )
}

/// Locks a tracker against other refreshes, its table and leaves first.
pub fn lock(connection: &Connection, tracker: &Tracker) {
    let table = names::relation(tracker.relation);
    let lock = format!("LOCK TABLE {table} IN ACCESS SHARE MODE");
    connection.prepare_kept(&lock, &[]).run(&[], &mut |_| {});
    State::lock(connection, tracker);
}
