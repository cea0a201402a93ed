//! The pairs of a group of rows that share a key.

use super::Tokens;
use crate::Result;
use crate::memory::collected;

/// The two sides of a join. A row may stand for rows of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    pub a: bool,
    pub b: bool,
}

impl Sides {
    pub const BOTH: Self = Self { a: true, b: true };
}

/// Visits every pair of a group of rows, ascending, that is to be compared: those that met under
/// the key of the group, and of which one stands for rows of side a and the other for rows of side
/// b.
///
/// # Errors
/// `OutOfMemory`, before the first pair.
pub fn pairs_of_group(
    tokens: &Tokens,
    group: &[u32],
    met: u32,
    sides: &dyn Fn(u32) -> Sides,
    visit: &mut dyn FnMut(u32, u32),
) -> Result<()> {
    let ours = collected(group.iter().copied().filter(|&row| sides(row).a))?;
    let theirs = collected(group.iter().copied().filter(|&row| sides(row).b))?;
    for &x in &ours {
        let x_is_both = sides(x).b;
        for &y in &theirs {
            // A pair whose rows could be on either side comes twice.
            let again = y >= x && (y == x || (x_is_both && sides(y).a));
            if !again && tokens.meet(x, y, met) {
                visit(x.min(y), x.max(y));
            }
        }
    }
    Ok(())
}
