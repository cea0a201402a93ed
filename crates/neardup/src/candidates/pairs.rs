//! The pairs of a group of rows that share a key.

use super::Tokens;

/// The two sides of a join. A row may stand for rows of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    pub a: bool,
    pub b: bool,
}

impl Sides {
    pub const BOTH: Self = Self { a: true, b: true };
}

/// Visits the pairs of a row and others of a group, ascending, that met under the key of the group and
/// are to be compared: the row stands for rows of side a, the other one for rows of side b. Over all
/// rows of all groups every pair comes once.
pub fn pairs_of_row(
    tokens: &Tokens,
    x: u32,
    group: &[u32],
    met: u32,
    sides: &dyn Fn(u32) -> Sides,
    visit: &mut dyn FnMut(u32, u32),
) {
    let sides_of_x = sides(x);
    if !sides_of_x.a {
        return;
    }
    for &y in group {
        let sides_of_y = sides(y);
        // A pair whose rows could be on either side comes twice.
        let again = y >= x && (y == x || (sides_of_x.b && sides_of_y.a));
        if sides_of_y.b && !again && tokens.meet(x, y, met) {
            visit(x.min(y), x.max(y));
        }
    }
}
