"""Compares calibration with recorded answers and simulations, and reports with counts; tests pages and the command `neardup`.

Argument: connection string of a database with a table docs (id bigint, body text).
"""

import collections
import contextlib
import csv
import html.parser
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import neardup
import numpy
import pandas
import psycopg
from neardup import _command, _html, lab
from neardup.lab import _calibrate

[dsn] = sys.argv[1:]
conn = psycopg.connect(dsn, autocommit=True)
HERE = pathlib.Path(__file__).parent
COMMAND = str(pathlib.Path(sys.executable).with_name("neardup"))


def fails(call, kind, message):
    try:
        call()
    except kind as error:
        assert message in str(error), f"{error} is not {message}"
        return
    raise AssertionError(f"no error: {message}")


# Calibration.


def worked_example():
    """With k = 1 the similarities are 1, 3/5, 1/3, 1/7 and 0."""
    others = ("D c b a", True), ("a b c x", True), ("a b x y", True), ("a x y z", False), ("v x y z", False)
    pairs = [("a b c d", other, same) for other, same in others] + [("a b c d", None, True)]
    [one] = lab.calibrate(pairs, [1], ["word"], ["case"]).methods
    assert (one.threshold, one.precision, one.recall, one.f1) == (0.2, 1, 1, 1), one
    assert one.precision_low < 0.6 and one.precision_high == 1 and one.f1_low < 0.8 and one.f1_high == 1, one
    two, three = lab.calibrate(pairs, [2, 3], ["word"], ["case"]).methods
    assert (two.k, two.threshold, two.precision, two.recall, two.f1) == (2, 0.1, 1, 2 / 3, 0.8), two
    assert (three.k, three.threshold, three.precision, three.recall, three.f1) == (3, 0.2, 1, 1 / 3, 0.5), three
    assert one.sql == "CREATE INDEX ON docs USING neardup (body text_ops (k = 1, unit = word, fold = case))"
    stricter = [(a, b, same and b != "a b x y") for a, b, same in pairs]
    [one] = lab.calibrate(stricter, [1], ["word"], ["case"], relation='"Some Docs"', column='"The Text"').methods
    assert one.sql == 'CREATE INDEX ON "Some Docs" USING neardup ("The Text" text_ops (k = 1, unit = word, fold = case))'
    # A weight counts as that many pairs.
    weighted = [(*pair, 1 if pair[2] else 3, 0.0) for pair in pairs[:5]]
    repeated = [pair for pair in pairs[:5] for _ in range(1 if pair[2] else 3)]
    figures = [[(m.threshold, m.precision, m.recall) for m in lab.calibrate(some, [1], ["word"], ["case"]).methods] for some in (weighted, repeated)]
    assert figures[0] == figures[1] == [(0.2, 1, 1)], figures
    # With a wanted precision or recall.
    mixed = [*pairs[:5], ("a b c d", "a b c y", False)]
    [precise] = lab.calibrate(mixed, [1], ["word"], ["case"], precision=1.0).methods
    assert (precise.threshold, precise.recall) == (0.8, 1 / 3), precise
    [complete] = lab.calibrate(mixed, [1], ["word"], ["case"], recall=1.0).methods
    assert complete.recall == 1 and complete.threshold == 0.2, complete
    # A pair without a label is represented by those of its weight.
    partly = [*pairs, ("a b c d", "a b c y", 0, 2), ("a", "a", math.nan, 2.0, 1.0), ("a", "a", pandas.NA, 2), ("a", "a", None, 3)]
    found = lab.calibrate(partly, [1], ["word"], ["case"])
    assert round(found.methods[0].precision, 12) == 3.6 / 9.6 and (found.pairs, found.left_out) == (6, 1), found
    assert "because no pair of their weight is labeled: 1\n" in str(found), str(found)
    fails(lambda: lab.calibrate([*pairs, ("a", "b", "no")]), ValueError, "same is True or False, not 'no'")
    fails(lambda: lab.calibrate(pairs[:3]), ValueError, "3 labeled pairs, 3 of them the same")
    for wrong in 0.0, None, math.nan:
        fails(lambda wrong=wrong: lab.calibrate([("a", "b", True, wrong, 0.1), ("a", "b", False, 1.0, 0.1)]), ValueError, "weight")
    fails(lambda: lab.calibrate([("a", "b")]), ValueError, "a pair is")
    fails(lambda: lab.calibrate(pairs, [0]), ValueError, "k = 0 is out of range")
    fails(lambda: lab.calibrate([("a", "a", False), ("a", "b", True)], [1], precision=0.9), ValueError, "no threshold reaches")


def recorded_answers():
    """Compare every combination of the grid with the answers of `near_dup_calibrate`, which the extension used to have."""
    recorded = json.loads((HERE / "calibrated.json").read_text(encoding="utf-8"))
    count = 0
    for case in recorded:
        found = lab.calibrate([tuple(pair) for pair in case["pairs"]])
        ours = [[m.unit, m.k, m.fold, m.threshold, m.precision, m.recall, m.f1] for m in found.methods]
        theirs = {tuple(row[:3]): row[3:] for row in case["rows"]}
        assert len(ours) == len(theirs)
        for unit, k, fold, *figures in ours:
            expected = theirs[unit, k, fold]
            assert figures[0] == expected[0] and numpy.allclose(figures, expected, rtol=0, atol=1e-12), (unit, k, fold, figures, expected)
            count += 1
        best = [row[6] for row in ours]
        assert best == sorted(best, reverse=True)
    return count


def draw_pairs(random, size):
    """Return similarities, labels and weights of a sample stratified by estimates, as `near_dup_sample_pairs` draws it."""
    scores, same, weights = [], [], []
    for tenth in range(10):
        chosen = random.choice(POPULATION[tenth], size // 10)
        scores += [POPULATION_SCORES[i] for i in chosen]
        same += [POPULATION_SAME[i] for i in chosen]
        weights += [len(POPULATION[tenth]) / (size // 10)] * (size // 10)
    return scores, same, weights


random = numpy.random.default_rng(7)
POPULATION_SCORES = numpy.concatenate([tenth / 10 + random.random(size) / 10 for tenth, size in enumerate((4000, 2000, 1200, 900, 700, 500, 400, 300, 300, 300))])
POPULATION_SAME = random.random(len(POPULATION_SCORES)) < 1 / (1 + numpy.exp(-9 * (POPULATION_SCORES - 0.5)))
ESTIMATES = random.binomial(128, POPULATION_SCORES) / 128
POPULATION = [numpy.flatnonzero((ESTIMATES * 10).astype(int).clip(max=9) == tenth) for tenth in range(10)]


class Drawn:
    """Labeled pairs, of which only the similarities matter."""

    def __init__(self, same, weights):
        self.same, self.weights = numpy.array(same), numpy.array(weights, dtype=float)
        self.strata = numpy.unique(self.weights, return_inverse=True)[1]


def coverage():
    """Check that intervals of 95 % cover precision and recall of the population in 92 to 99 % of samples, stratified or not."""
    figures = []
    for is_stratified, size in ((False, 200), (True, 200), (True, 500)):
        random = numpy.random.default_rng(size)
        covered, all_ = collections.Counter(), 0
        for _ in range(SAMPLES):
            if is_stratified:
                scores, same, weights = draw_pairs(random, size)
            else:
                chosen = random.integers(len(POPULATION_SCORES), size=size)
                scores, same, weights = POPULATION_SCORES[chosen], POPULATION_SAME[chosen], [1.0] * size
            curve = _calibrate._curve(numpy.array(scores), Drawn(same, weights), all_)
            all_ += 1
            for threshold in (0.4, 0.6, 0.8):
                above = POPULATION_SCORES >= threshold
                right = (POPULATION_SAME & above).sum()
                place = numpy.searchsorted(curve.thresholds, threshold)
                for name, truth in (("precision", right / above.sum()), ("recall", right / POPULATION_SAME.sum())):
                    low, high = (getattr(curve, f"{name}_{end}")[place] for end in ("low", "high"))
                    covered[name] += low <= truth <= high
        for name, count in covered.items():
            share = count / (3 * all_)
            assert 0.92 <= share <= 0.99, f"{name}, {size} pairs, strata: {is_stratified}: {share}"
            figures.append(round(float(share), 3))
    return figures


SAMPLES = 150


def curves():
    """Check that intervals contain the figures, that the picture is the same twice, and that round numbers are right."""
    texts = [row[0] for row in conn.execute("SELECT body FROM docs ORDER BY id LIMIT 80").fetchall()]
    pairs = [(text, text[: len(text) * (i % 10 + 1) // 11], i % 10 > 4) for i, text in enumerate(texts)]
    found, again = (lab.calibrate(pairs, [2, 3], ["word"], ["case"]) for _ in range(2))
    assert found.svg() == again.svg() and str(found) == str(again)
    xml.etree.ElementTree.fromstring(found.svg())
    assert 'role="img"' in found.svg() and "<script" not in found.svg() and "2026" not in found.svg()
    for curve in found.curves:
        for name in ("precision", "recall", "f1"):
            low, value, high = (getattr(curve, name + end) for end in ("_low", "", "_high"))
            assert (low <= value).all() and (value <= high).all() and (0 <= low).all() and (high <= 1).all()
    for below, lowest, number in ((0.5, 1, 0.8), (0, 0.35, 0.2), (0.61, 0.69, 0.65), (0.6, 0.7, 0.7), (0, 0.05, 0.03), (1 / 3, 0.334, 0.334)):
        assert _calibrate.roundest(below, lowest) == number, number
    above = math.nextafter(0.5, 1)
    assert _calibrate.roundest(0.5, above) == above


# Pages.


class Checker(html.parser.HTMLParser):
    """Checks that elements are closed in order, that identifiers are unique, and that nothing runs or loads."""

    VOID = {"meta", "br", "img"}
    BLOCKS = {"br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "h5", "li", "p", "summary", "td", "th"}

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.text = [], set(), []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            assert not name.startswith("on") and name != "src", f"{name}={value}"
            assert name not in ("href", "xlink:href") or value.startswith("#"), value
            if name == "id":
                assert value not in self.ids, f"{value} twice"
                self.ids.add(value)
        assert tag not in ("script", "iframe", "link", "object"), tag
        if tag in self.BLOCKS:
            self.text.append(" ")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(page):
    """Return the text of a page, without its markup."""
    checker = Checker()
    checker.feed(page)
    assert not checker.open, checker.open
    return " ".join("".join(checker.text).split())


def pairs_of_documents():
    """Check that texts stay complete and that invisible characters are shown."""
    a = "One two three four five six <b>bold</b>.\nSeven & eight\u202e nine\x01 ten \u200b"
    b = "Seven & eight nine ten\nbut one two three four five six! 11"
    page = neardup.diff_html(a, b)
    text = read(page)
    assert page == neardup.diff_html(a, b)
    for part in ("<b>bold</b>", "U+202E", "␁", "U+200B", "common run of 5 words or more"):
        assert part in text, f"{part} is not in {text}"
    assert page.count('class="c"') + page.count('class="c m"') >= 2 and "<del>" in page and "<ins>" in page
    long = "\n".join(f"line {i} of a long text, {'w' * (i % 9000)}" for i in range(400))
    segments = neardup.explain(long, long.replace("7", "8")).a
    blocks = _html.blocks(segments)
    assert "".join(piece.text for block in blocks for piece in block) == long
    assert all(sum(len(piece.text) for piece in block) <= _html.BLOCK for block in blocks)
    # Every run begins only once.
    begun = collections.Counter(piece.chunk for block in blocks for piece in block if piece.begins and piece.chunk is not None)
    assert set(begun.values()) <= {1} and set(begun) == {segment.chunk for segment in segments} - {None}
    for nothing in (("", ""), ("", "a"), ("!", "?")):
        read(neardup.diff_html(*nothing))
    fails(lambda: neardup.diff_html("w" * (1 << 24), "w"), ValueError, "characters")
    fails(lambda: neardup.diff_html("a", "b", 0), ValueError, "min_words = 0")
    for value, whole, decimals, text in ((0.5, 1, 3, "0.500"), (1e-9, 1, 3, "<\u00a00.001"), (1 - 1e-9, 1, 3, ">\u00a00.999"), (0, 1, 3, "0.000"), (100, 100, 1, "100.0")):
        assert _html.rounded(value, whole, decimals) == text


def contrasts():
    """Check that text has a contrast of 4.5 to 1 by the formulas of WCAG 2.1, in the light and in the dark mode."""
    style = pathlib.Path(_html.__file__).with_name("templates").joinpath("base.css").read_text(encoding="utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    for theme in (light, dark):
        value = dict(re.findall(r"--([a-z]+): ([^;]+);", theme))

        def color(name):
            digits = value[name][1:]
            size = len(digits) // 3
            return [int(digits[i * size : (i + 1) * size], 16) / (16**size - 1) for i in range(3)]

        def run(hue, lightness):
            saturation, lightness = (float(value[name].rstrip("%")) / 100 for name in ("s", lightness))
            most = saturation * min(lightness, 1 - lightness)
            places = [(shift + hue / 30) % 12 for shift in (0, 8, 4)]
            return [lightness - most * max(-1, min(place - 3, 9 - place, 1)) for place in places]

        def luminance(rgb):
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        def contrast(one, other):
            low, high = sorted((luminance(one), luminance(other)))
            return (high + 0.05) / (low + 0.05)

        for ink in ("ink", "quiet", "link", "del", "ins"):
            for paper in ("paper", "page"):
                assert contrast(color(ink), color(paper)) >= 4.5, (ink, paper)
        for hue in range(190, 310):
            assert contrast(color("ink"), run(hue, "l")) >= 4.5, hue
            assert contrast(run(hue, "edge"), color("paper")) >= 3, hue
        assert contrast(color("bar"), color("paper")) >= 3


def reports():
    """Check that counts equal SQL's, and that the page is the same twice, keeps to its size, and lists its omissions."""
    conn.execute(
        "CREATE TABLE notes AS SELECT i AS id, 'source ' || i % 3 AS source, date '2026-01-01' + i % 40 AS day,"
        " 'note 100 % ' || (i / 4) || (SELECT string_agg(' word' || i / 4 * 50 + w, '') FROM generate_series(1, 40) w)"
        " || CASE i % 4 WHEN 0 THEN '' ELSE ' and ' || i END AS body FROM generate_series(0, 399) i"
    )
    conn.execute("INSERT INTO notes VALUES (400, NULL, NULL, ''), (401, 'x', 'infinity', NULL), (402, 'source 1', '1026-01-01', 'alone')")
    conn.execute("INSERT INTO notes VALUES (403, 'source 1', '20250-01-01', 'single'), (404, 'source 1', '0044-03-15 BC', 'solitary')")
    query = "SELECT id, body, source, day FROM notes WHERE body LIKE '%%' OR body IS NULL ORDER BY id;"
    page = lab.report(conn, query, 0.6, title="A <b>title</b> & more")
    assert page == lab.report(conn, query, 0.6, title="A <b>title</b> & more")
    text = read(page)
    [(documents, redundant, redundant_bytes)] = conn.execute(
        "SELECT count(*), count(*) FILTER (WHERE c.cluster <> n.id), sum(octet_length(body)) FILTER (WHERE c.cluster <> n.id)"
        " FROM notes n LEFT JOIN near_dup_clusters(NULL::int, 'SELECT id, body FROM notes ORDER BY id', 0.6) c ON c.key = n.id"
    ).fetchall()
    for part in (
        "A <b>title</b> & more", f"documents {documents} ", "groups of near-duplicates 100 ", f"redundant documents {redundant} (",
        f"redundant bytes {redundant_bytes:,} (", "Not compared, without a word or a signature: 2.", "before 2026-01-01 2 ", "after 2026-02-09 1 ",
        "Without a day: 2.",
        "source 1", "Group 100: 4 documents", "added at end", "Side by side: 399",
    ):
        assert part in text, f"{part} is not in the report: {text[:3000]}"
    by_key = lab.report(conn, "SELECT id, minhash(body) AS s, body FROM notes ORDER BY id", 0.6)
    assert "redundant documents 300 (" in read(by_key)
    kept = "SELECT id, body, source, day, c.cluster AS canonical, c.similarity FROM notes n LEFT JOIN near_dup_clusters(NULL::int," \
        " 'SELECT id, body FROM notes ORDER BY id', 0.6) c ON c.key = n.id ORDER BY id"
    given = page.replace("<p>Documents of a similarity of at least 0.6 are near-duplicates.</p>\n", "")
    assert lab.report(conn, kept, 0.6, title="A <b>title</b> & more") == given != page
    # Groups of the query, of a lower threshold.
    members = "(VALUES (1, 'a b c', 1, 1.0), (2, 'a b d', 1, 0.33), (3, 'a b c d', 1, 0.9)) v (id, body, canonical, similarity)"
    text = read(lab.report(conn, f"SELECT * FROM {members}"))
    assert "of a similarity of at least" not in text and "Similarity from Documents 0.3 1 0.37 0 " in text and "0.86 1 " in text, text
    small = lab.report(conn, query, 0.6, groups=90, max_bytes=90_000)
    text = read(small)
    assert len(small.encode()) <= 90_000 and "did not fit into 90,000 bytes" in text and "of 100 groups" in text, text[-600:]
    assert "Left out: both texts of" in text
    empty = lab.report(conn, "SELECT id, body FROM notes WHERE false")
    assert "There are no documents." in read(empty) and "<nav" not in empty
    fails(lambda: lab.report(conn, query, 0.6, max_bytes=10_000), ValueError, "max_bytes = 10000 is too small")
    assert "No two documents are near-duplicates." in read(lab.report(conn, "SELECT id, body FROM notes WHERE id % 4 = 0"))
    assert "Not compared" in read(lab.report(conn, "SELECT nullif(id, 3), body FROM notes ORDER BY id"))
    for wrong, message in (
        ("SELECT id FROM notes", "the query yields the columns id"),
        ("SELECT id, body, id FROM notes", "the query yields the columns"),
        ("SELECT id, body, 1 AS canonical FROM notes", "only one of the columns"),
        ("SELECT (random() * 1e9)::int, body FROM notes", "other rows when it runs again"),
        ("SELECT id, body, 9999 AS canonical, 0.9::float8 AS similarity FROM notes WHERE id < 2", "the query yields no row 9999"),
    ):
        fails(lambda wrong=wrong: lab.report(conn, wrong), ValueError, message)
    fails(lambda: lab.report(conn, "SELECT id, body FROM nowhere"), psycopg.errors.UndefinedTable, "nowhere")
    far = "SELECT i, 'one two three ' || i / 2, '20250-01-01'::date AS day FROM generate_series(1, 4) i"
    text = read(lab.report(conn, far, 0.5))
    assert "documents 4" in text and "Over time" not in text and "9999" not in text, text


def long_documents():
    """Check that long documents have views, which take room only for the text that they show."""
    body = "(SELECT string_agg('word' || w, ' ') FROM generate_series(1, 9000) w) || ' number ' || i"
    page = lab.report(conn, f"SELECT i, {body} FROM generate_series(1, 3) i ORDER BY i", max_bytes=300_000)
    assert page.count("Side by side") == 2 and "which did not fit" not in page, len(page)


# The command.


def command(*arguments, **options):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, **options)


def one_line(done, part):
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and part in done.stderr, done


def commands():
    """Run the four commands, and check that every error is reported in one line."""
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        query = "SELECT id, body FROM docs ORDER BY id"
        for _ in range(2):
            done = command("report", dsn, query, "-t", "0.5", "-o", str(place / "report.html"))
            assert done.returncode == 0 and not done.stdout and not done.stderr, done
        assert "documents" in read((place / "report.html").read_text(encoding="utf-8"))
        done = command("sample", dsn, query, "-n", "60", "-o", str(place / "labels.csv"))
        assert done.returncode == 0 and not done.stderr, done
        with open(place / "labels.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        drawn = lab.sample(conn, query, 60)
        assert [(row["a_key"], row["b_key"], *map(_command.of_cell, (row["a"], row["b"]))) for row in rows] == [(str(a), str(b), x, y) for a, b, _, _, x, y in drawn]
        one_line(command("calibrate", str(place / "labels.csv")), "0 labeled pairs")
        with open(place / "labels.csv", "w", encoding="utf-8-sig", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            labels = [None if i % 5 == 3 else float(row["similarity"]) >= 0.35 for i, row in enumerate(rows)]
            table.writerows({**row, "same": {None: "", True: "yes", False: "0"}[same]} for row, same in zip(rows, labels, strict=True))
        read_again = [pair[2:] for pair in _command.labeled(str(place / "labels.csv"))]
        assert read_again == [(same, float(row["weight"])) for row, same in zip(rows, labels, strict=True)], read_again
        done = command("calibrate", str(place / "labels.csv"), "-k", "3", "--unit", "word", "--fold", "case", "-o", str(place / "curve.svg"))
        assert done.returncode == 0 and "word  3  case" in done.stdout and "1.000 [" in done.stdout, done
        assert (place / "curve.svg").read_text(encoding="utf-8").startswith("<svg ")
        (place / "a.txt").write_text("one two three four five six", encoding="utf-8")
        (place / "b.txt").write_bytes(b"one two three four five \xff seven")
        done = command("diff", str(place / "a.txt"), str(place / "b.txt"))
        assert done.returncode == 0 and "common words" in read(done.stdout), done
        (place / "wrong.csv").write_text("a,b\n1,2\n", encoding="utf-8")
        one_line(command("calibrate", str(place / "wrong.csv")), "has no column same")
        (place / "wrong.csv").write_text("a,b,same\n1,2,perhaps\n", encoding="utf-8")
        one_line(command("calibrate", str(place / "wrong.csv")), "line 2: same is yes or no, not 'perhaps'")
        one_line(command("report", dsn, query, "-o", str(place / "no" / "report.html")), "No such file")
        formulas(place / "formulas.csv")
    one_line(command("report", "host=/nowhere", query), "connection")
    one_line(command("report", "nonsense", query), "neardup: ")
    one_line(command("report", dsn, "SELECT nothing FROM nowhere"), 'relation "nowhere" does not exist')
    one_line(command("report", dsn, "SELEC"), "syntax error")
    one_line(command("report", dsn, query, "-t", "7"), "HINT")
    one_line(command("sample", dsn, "SELECT 1"), "neardup: ")
    # The reader of the output ends early.
    done = subprocess.run(["bash", "-c", f'"{COMMAND}" sample "{dsn}" "{query}" -n 1000 | head -1; exit ${{PIPESTATUS[0]}}'], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and done.stdout.startswith("a_key,"), done
    # Ctrl-C while the server works; a background job of a shell ignores SIGINT, and so do its children.
    slow = "SELECT i, (SELECT body FROM docs LIMIT 1) || pg_sleep(0.2) FROM generate_series(1, 1000) i"
    child = subprocess.Popen(
        [COMMAND, "report", dsn, slow], stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    )
    running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'neardup' AND state = 'active' AND query LIKE '%near_dup_clusters%'"
    until(running, 1)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 1 and told.count("\n") == 1 and told.startswith("neardup: "), (child.returncode, told)
    until(running, 0)


def interrupted():
    """Check that an interrupt while psycopg does not wait for the server ends the query, without a further message."""
    query = "SELECT pg_sleep(1000)"
    running = f"SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = '{query}'"
    with unittest.TestCase().assertNoLogs("psycopg"), contextlib.suppress(KeyboardInterrupt), _command.connected(dsn) as connection:
        connection.pgconn.send_query(query.encode())
        until(running, 1)
        raise KeyboardInterrupt
    until(running, 0)


def formulas(file):
    """Check that no document is a formula in a spreadsheet, and that calibration reads what was sampled."""
    texts = [f"{begin}one two three {i}" for i, begin in enumerate(("=", "+", "-", "@", "\t=", "\r", "\n", "\uff1d", "'=", "''-", "'", "''", ""))]
    values = ", ".join(f"({i}, {psycopg.sql.Literal(text).as_string(conn)})" for i, text in enumerate(texts))
    done = command("sample", dsn, f"SELECT * FROM (VALUES {values}) v", "-k", "1", "-n", "1000", "-o", str(file))
    assert done.returncode == 0 and not done.stderr, done
    with open(file, encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    assert not {row[side][0] for row in rows for side in "ab"} & set("=+-@\t\r\n\uff1d"), rows
    with open(file, "w", encoding="utf-8", newline="") as table:
        written = csv.DictWriter(table, rows[0])
        written.writeheader()
        written.writerows({**row, "same": "yes"} for row in rows)
    read_again = {text for pair in _command.labeled(str(file)) for text in pair[:2]}
    assert read_again == set(texts), read_again ^ set(texts)


def without_encoding():
    """Check that texts in a database of SQL_ASCII are read and written as UTF-8, and that others are an error of one line."""
    name = "lab_sql_ascii"
    conn.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    place = psycopg.conninfo.make_conninfo(dsn, dbname=name)
    with psycopg.connect(place, autocommit=True, client_encoding="UTF8") as inside:
        inside.execute("CREATE EXTENSION pg_neardup")
        inside.execute("CREATE TABLE d AS SELECT i AS id, 'eins zwei drei vier fünf sechs sieben ' || i AS body FROM generate_series(1, 4) i")
    known = "SELECT id, body, 1 AS canonical, 0.9::float8 AS similarity FROM d ORDER BY id"
    for arguments in ("sample", "TABLE d ORDER BY id", "-k", "1"), ("report", "TABLE d ORDER BY id", "-t", "0.5"), ("report", known):
        done = command(arguments[0], place, *arguments[1:], env=os.environ | {"PYTHONIOENCODING": "latin-1"})
        assert done.returncode == 0 and "fünf" in done.stdout and not done.stderr, done
    wrong = "SELECT id, body || E'\\xff', 1 AS canonical, 0.9::float8 AS similarity FROM d ORDER BY id"
    one_line(command("report", place, wrong), "invalid byte sequence")
    conn.execute(f"DROP DATABASE {name}")


def until(query, count):
    end = time.monotonic() + 120
    while conn.execute(query).fetchone()[0] != count:
        assert time.monotonic() < end, query
        time.sleep(0.05)


def on_terminal(place):
    """Return what a report of slow documents writes to a terminal."""
    slow = "SELECT i, 'text ' || i || pg_sleep(0.02) FROM generate_series(1, 100) i"
    leader, follower = os.openpty()
    child = subprocess.Popen([COMMAND, "report", place, slow, "-o", os.devnull], stderr=follower)
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 1 << 16)
        except OSError:
            break
        if not part:
            break
        said += part
    assert child.wait(60) == 0, said
    return said


def progress():
    """Check that on a terminal, a line shows the stage and its progress, if there can be a second connection."""
    said = on_terminal(dsn)
    assert b"reading" in said, said
    conn.execute("CREATE ROLE lab_single LOGIN CONNECTION LIMIT 1")
    said = on_terminal(psycopg.conninfo.make_conninfo(dsn, user="lab_single"))
    assert b"reading" not in said and b"Traceback" not in said, said
    conn.execute("DROP ROLE lab_single")


worked_example()
recorded = recorded_answers()
curves()
covered = coverage()
pairs_of_documents()
contrasts()
reports()
long_documents()
commands()
interrupted()
without_encoding()
progress()
print(f"{recorded} recorded calibrations equal; intervals cover {min(covered)} to {max(covered)}")
