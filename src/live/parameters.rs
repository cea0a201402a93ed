//! The parameters that all signatures of a tracked table have.

use crate::index::kind::Kind;
use crate::live::shape::Shape;
use crate::minhash::datum::StoredSignature;
use crate::pg::error::OrRaise;
use crate::pg::statement::Connection;
use neardup::minhash::Header;
use pgrx::pg_sys;

/// The parameters of the signatures met so far; none before the first one.
#[derive(Default, Clone, Copy)]
pub struct TrackedParameters(Option<Header>);

impl TrackedParameters {
    /// Returns the parameters of the rows that a tracker knows.
    pub fn known(connection: &Connection, shape: &Shape) -> Self {
        let mut parameters = Self::default();
        if shape.tracker.measure.kind != Kind::Minhash {
            return parameters;
        }
        let any = format!("SELECT ca.kept FROM {} ca LIMIT 1", shape.canonical());
        let any = connection.prepare_kept(&any, &[]);
        any.run(&[], &mut |row| parameters.check(row.datum(1)));
        parameters
    }

    /// Checks a signature, which may be NULL or empty.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` if it was made with other parameters than those before.
    pub fn check(&mut self, signature: Option<pg_sys::Datum>) {
        let Some(datum) = signature else { return };
        // SAFETY: the datum is a signature; its row outlives the borrow.
        let stored = unsafe { StoredSignature::from_raw(datum) };
        let header = stored.read().header;
        if !header.empty {
            let known = self.0.get_or_insert(header);
            known.check_comparable(&header).or_raise();
        }
    }
}
