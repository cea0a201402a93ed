//! Splits a document into parts, and cuts passages out of it.

use crate::pg::multirange::integer_ranges;
use crate::pg::prelude::*;
use crate::pg::varlena::MAX_BYTES;
use neardup::passages::cut;
use neardup::text::split;
use pgrx::prelude::*;

/// Implements `split_text(doc, by)`: returns the parts with their numbers and the positions of their first characters,
/// both counted from 1.
///
/// # Errors
/// `invalid_parameter_value` for an unknown kind of part.
#[pg_extern(sql = false)]
fn split_text(call: Call) {
    let [doc, by] =
        [(0, "doc"), (1, "by")].map(|(number, name)| call.get::<Text<'_>>(number, name));
    let by = by.name().parse().or_raise();
    let (mut rows, mut number) = (call.rows(), 0);
    let doc = as_str(&doc);
    split(doc, by, &mut check_interrupts, &mut |start, part| {
        number += 1;
        let part = NewText(copied(part.as_bytes()).or_raise()).into_datum();
        let start = (start as i32 + 1).into_datum();
        rows.put_and_free([number.into_datum(), start, part], &[part]);
    });
}

/// Implements `cut_passages(doc, spans, replacement)`: returns the document with the characters in `spans`, counted
/// from 1, replaced.
///
/// # Errors
/// `invalid_parameter_value` for a span outside the document; `program_limit_exceeded` if the result exceeds 1 GB.
#[pg_extern(sql = false)]
fn cut_passages(call: Call) -> NewText {
    let doc: Text<'_> = call.get(0, "doc");
    // SAFETY: the argument is declared as int4multirange.
    let spans = unsafe { integer_ranges(call.argument(1, "spans")) };
    let replacement: Text<'_> = call.get(2, "replacement");
    let characters = spans.iter().map(|span| {
        if span.start < 1 {
            let [start, end] = [span.start, span.end].map(i64::from);
            invalid(
                &format!("span [{start},{end}) begins before the document"),
                "Characters are numbered from 1.",
            );
        }
        span.start as usize - 1..span.end as usize - 1
    });
    let (doc, replacement) = (as_str(&doc), as_str(&replacement));
    let check = &mut check_interrupts;
    let left = cut(doc, characters, replacement, MAX_BYTES, check).or_raise();
    NewText(left.into_bytes())
}

/// Returns a text as a string.
///
/// # Errors
/// ERROR `character_not_in_repertoire` if it is not UTF-8, which happens only in SQL_ASCII.
fn as_str<'a>(text: &'a Text<'_>) -> &'a str {
    std::str::from_utf8(text).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
            "the text is not valid UTF-8",
            "Characters are those of the database's encoding; in SQL_ASCII, of UTF-8.",
        )
    })
}

pgrx::extension_sql_file!("../../sql/text/passages.sql", name = "text_passages");
