//! Error messages that quote the input.

use neardup::minhash::Signature;
use neardup::quoted;
use neardup::text::Unit;

#[test]
fn messages_quote_the_beginning_of_long_names() {
    assert_eq!(quoted("wrod"), "\"wrod\"");
    let long = "ß".repeat(1_000_000);
    let rejected = long.parse::<Unit>().expect_err("no unit").to_string();
    assert_eq!(rejected, format!("unknown unit \"{}...\"", "ß".repeat(64)));
    let text = format!("minhash:1:word:{}:case:128x32:0:", "9".repeat(1_000_000));
    let rejected = Signature::parse_text(&text)
        .expect_err("no number")
        .to_string();
    assert!(rejected.len() < 200, "{} bytes", rejected.len());
}
