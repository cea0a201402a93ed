//! Tests that a guard added to a page's table does not stop its writes for lack of a usable index, because readers of a
//! page may add the guard next.

use anyhow::{Result, bail};
use postgres::Client;
use postgres::error::SqlState;

/// The indexed columns of the database's tables, with a bound that every index supports, and the columns that can be
/// written.
const GUARDED: &str = "
    SELECT DISTINCT c.oid::regclass::text, quote_literal(a.attname),
           CASE o.opcname WHEN 'hamming_ops' THEN '0' ELSE '1' END,
           (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
            WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '')
    FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_opclass o ON o.oid = x.indclass[0]
         JOIN pg_am m ON m.oid = o.opcmethod AND m.amname = 'neardup'
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
    WHERE o.opcname IN ('minhash_ops', 'hamming_ops', 'set_ops') AND NOT c.relispartition";

/// Adds a guard to every table with an indexed value, and inserts one of its rows again.
///
/// # Errors
/// Fails if a guard has no usable index.
pub fn check(client: &mut Client) -> Result<()> {
    for row in client.query(GUARDED, &[])? {
        let [table, column, bound, columns] = [0, 1, 2, 3].map(|i| row.get::<_, String>(i));
        let mut transaction = client.transaction()?;
        transaction.batch_execute(&format!(
            "CREATE TRIGGER guard_of_the_test AFTER INSERT ON {table}
             FOR EACH ROW EXECUTE FUNCTION near_dup_guard({column}, '{bound}')"
        ))?;
        let inserted = transaction.batch_execute(&format!(
            "INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {table} LIMIT 1"
        ));
        match inserted {
            Err(error) if error.code() == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE) => {
                bail!("a guard on {table} stops all writes: {error:?}")
            }
            // Rejected as a copy, or accepted.
            _ => transaction.rollback()?,
        }
    }
    Ok(())
}
