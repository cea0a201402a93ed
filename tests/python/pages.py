"""Writes pages of hostile documents, to be looked at in a browser.

Arguments: connection string, directory. Pages of pairs are called pair-*.html, reports report-*.html.
"""

import pathlib
import sys

import neardup
import psycopg
from neardup import lab

HOSTILE = [
    '<script>ran = true</script> <img src=x onerror="ran = true"> <svg onload="ran = true">',
    "</div></article></main></style></title><script>ran = true</script><style>*{display:none}</style>",
    "\" onmouseover=\"ran = true\" style=\"width: 9999px\" x=\" ' onfocus=ran=true autofocus",
    "&lt;script&gt;ran = true&lt;/script&gt; &#60;script&#62;ran=true&#60;/script&#62; <!-- &amp; ]]>",
    "{{ 7 * 7 }} {% raw %} a\u202eevil\u202c \u2066isolate \u200f\u05d0\u05d1 \x01\x1b[31m \u2028\ufffe \u200b\ufeff",
    "w" * (1 << 20),
    "word " * ((1 << 20) // 5),
]
REPORTS = {
    "hostile": "SELECT d || i, repeat(d || ' ', 3) || i, d, date '2025-01-01' + i FROM hostile, generate_series(1, 4) i",
    "right-to-left": "SELECT 'مفتاح ' || i, repeat('نص عربي طويل مع كلمات كثيرة و English بينها ', 20) || i, 'مصدر', date '2025-01-01' + i"
    " FROM generate_series(1, 30) i",
    "no-document": "SELECT '', '', '', date '2025-01-01' WHERE false",
    "ten-thousand-groups": "SELECT i::text, 'group ' || i / 2 || (SELECT string_agg(' word' || i / 2 || '-' || w, '') FROM generate_series(1, 30) w)"
    " || CASE WHEN i % 2 = 0 THEN '' ELSE ' and more' END, 'source ' || i % 200, date '2000-01-01' + i FROM generate_series(0, 19999) i",
}
TITLE = "<script>ran = true</script>\u202e<b>A title</b>"

dsn, directory = sys.argv[1:]
directory = pathlib.Path(directory)
for old in directory.glob("*.html"):
    old.unlink()
for place, document in enumerate(HOSTILE):
    page = neardup.diff_html(document, "one two three four five " + document)
    (directory / f"pair-{place}.html").write_text(page, encoding="utf-8", newline="")
with psycopg.connect(dsn, autocommit=True) as connection:
    connection.execute("CREATE TABLE hostile (d text)")
    with connection.cursor().copy("COPY hostile FROM STDIN") as copy:
        for document in HOSTILE:
            copy.write_row([document[:20000]])
    for name, rows in REPORTS.items():
        query = f"SELECT k::text, b::text, s::text AS source, y AS day FROM ({rows}) r (k, b, s, y)"
        page = lab.report(connection, query, 0.5, title=TITLE, groups=10000)
        assert len(page.encode()) <= 3_000_000, f"{name}: {len(page.encode())} bytes"
        (directory / f"report-{name}.html").write_text(page, encoding="utf-8", newline="")
print(f"{len(HOSTILE)} pairs, {len(REPORTS)} reports")
