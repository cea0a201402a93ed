"""The page about the near-duplicates of a collection."""

from __future__ import annotations

import bisect
import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup
from psycopg import Connection, sql

from .. import explain
from .._html import Pair, rounded, templates
from ._charts import Chart, bars
from ._query import UserQuery

MEMBERS = 20
"""Maximum number of members of a group to list."""

VIEWED = 3
"""Maximum number of members of a group to show side by side."""

VIEWED_TEXT = 8 << 10
"""Maximum number of characters of a document to show side by side."""

EXPLAINED = 1 << 20
"""Maximum number of characters of two documents to compare word by word."""

MIN_WORDS = 5
"""Minimum number of words of a common run that is marked."""

PERIODS = 50
"""Maximum number of bars over time."""

DAY = "CASE WHEN isfinite(q.day) THEN least(greatest(q.day::date, '0001-01-01'), '9999-12-31') END"
"""The day of a row, in the range of Python's dates."""

OUTERMOST = (datetime.date.min, datetime.date.max)
"""Days that may stand for days outside the range of Python's dates."""

SIZES = ((2, "2"), (3, "3"), (4, "4"), (9, "5–9"), (19, "10–19"), (49, "20–49"), (99, "50–99"), (999, "100–999"))

COLUMNS = (
    "Select the key, optionally the signature (minhash_signature), the document (text), and columns named source and"
    " day (date), and of known clusters canonical (of the key's type) and similarity."
)


class Row(NamedTuple):
    """The properties of a document that are counted."""

    key: str | None
    bytes: int
    source: str | None
    day: datetime.date | None
    canonical: str | None
    """The key of the canonical document of its group; None if it is not compared."""
    similarity: float | None

    @property
    def is_redundant(self) -> bool:
        return self.canonical is not None and self.canonical != self.key


class Tally:
    """Numbers of documents."""

    def __init__(self, rows: list[Row]) -> None:
        redundant = [row for row in rows if row.is_redundant]
        self.documents, self.redundant = len(rows), len(redundant)
        self.redundant_bytes = sum(row.bytes for row in redundant)
        self.share = self.redundant / max(1, self.documents)
        self.bytes_share = self.redundant_bytes / max(1, sum(row.bytes for row in rows))


@dataclass
class Shown:
    """A document of a group as the page shows it."""

    key: str
    source: str | None
    day: datetime.date | None
    text: str
    similarity: str = ""
    explanation: Any = None
    view: Pair | None = None


def report(
    connection: Connection[Any],
    query: str,
    threshold: float = 0.8,
    *,
    title: str = "Near-duplicates",
    groups: int = 100,
    max_bytes: int = 3_000_000,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> str:
    """Return an HTML page about the near-duplicates of a collection.

    ``query`` yields a unique key and a document, in the order in which documents may become canonical; a signature
    between them determines the shingles. Columns named ``source`` and ``day`` (a date) are counted. Groups are the
    star clusters of ``near_dup_clusters``, or those of the columns ``canonical`` and ``similarity``. Of the largest
    ``groups`` as many are shown as fit into ``max_bytes``; the page says what it leaves out. It has no scripts and
    loads nothing. ``progress`` is called with a stage, the number done, and the total. Raises ValueError if
    ``max_bytes`` is too small for a page without groups.
    """
    asked = UserQuery(connection, query)
    names = _names(asked)
    rows = _rows(asked, names, threshold)
    members: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.canonical is not None:
            members[row.canonical].append(row)
    found = [(key, group) for key, group in members.items() if len(group) > 1]
    # Among groups of the same size, the one that comes first in the query is first.
    found.sort(key=lambda group: -len(group[1]))
    total = Tally(rows)
    has_groups = "canonical" in names
    charts = [_sizes(found), _similarities(rows, threshold, has_groups)] if found else []
    timeline, undated = _timeline(rows)
    page = templates().get_template("report.html")
    legend = templates().get_template("macros.html").module.legend
    context: dict[str, Any] = {
        "title": title,
        "threshold": None if has_groups else f"{threshold:g}",
        "total": total,
        "groups": len(found),
        "uncompared": sum(row.canonical is None for row in rows),
        "charts": charts,
        "sources": _sources(rows),
        "timeline": timeline,
        "undated": undated,
        "members": MEMBERS,
        "viewed": VIEWED,
        "legend": legend(MIN_WORDS, "the canonical document", "the member"),
        "max_bytes": max_bytes,
        "not_fitting": 0,
        "without_view": 0,
    }
    frame = page.render(shown_groups=[], **context)
    # What is left out is said in a few more bytes.
    needed = len(frame.encode()) + 500
    if needed > max_bytes:
        raise ValueError(f"max_bytes = {max_bytes} is too small for a page without its groups\nHINT:  The minimum is {needed}.")
    room = max_bytes - needed
    written = _groups(asked, names, found[:groups], room, progress)
    context["not_fitting"] = min(groups, len(found)) - len(written.groups)
    context["without_view"] = written.without_view
    return str(page.render(shown_groups=written.groups, **context))


def _names(asked: UserQuery) -> list[str]:
    """Return the names under which the columns of the query are requested.

    Raises ValueError for columns that the report does not know.
    """
    rest = {"source", "day", "canonical", "similarity"}
    types = [asked.type_of(place) for place in range(len(asked.names))]
    has_signature = len(types) > 1 and types[1].split(".")[-1] == "minhash_signature"
    first = ["key", "signature", "document"] if has_signature else ["key", "document"]
    others = asked.names[len(first) :]
    if len(asked.names) < len(first) or not set(others) <= rest or len(set(others)) < len(others):
        raise ValueError(f"the query yields the columns {', '.join(asked.names)}. {COLUMNS}")
    if ("canonical" in others) != ("similarity" in others):
        raise ValueError(f"the query yields only one of the columns canonical and similarity. {COLUMNS}")
    return first + others


def _rows(asked: UserQuery, names: list[str], threshold: float) -> list[Row]:
    """Return a row for each document, in the order of the query."""
    source = asked.source(*names)
    facts = [
        sql.SQL("q.key::text, coalesce(octet_length(q.document), 0)"),
        sql.SQL("q.source::text" if "source" in names else "NULL"),
        sql.SQL(DAY if "day" in names else "NULL"),
    ]
    if "canonical" in names:
        facts.append(sql.SQL("CASE WHEN q.similarity IS NOT NULL THEN q.canonical::text END, q.similarity, true"))
        clusters: sql.Composable = sql.SQL("")
    else:
        facts.append(sql.SQL("CASE WHEN c.similarity IS NOT NULL THEN c.cluster::text END, c.similarity, c.key IS NOT NULL OR q.key IS NULL"))
        compared = sql.SQL(", ").join(map(sql.Identifier, [name for name in names if name in ("key", "signature", "document")]))
        clusters = sql.SQL(" LEFT JOIN near_dup_clusters({}, {}, {}) AS c ON c.key = q.key").format(
            sql.SQL("NULL::" + asked.type_of(0)),
            asked.as_text("SELECT {} FROM {}", compared, source),
            sql.Literal(threshold),
        )
    numbered = sql.SQL("(SELECT row_number() OVER () AS number, q.* FROM {}) AS q").format(source)
    found = asked.run("SELECT {} FROM {}{} ORDER BY q.number", sql.SQL(", ").join(facts), numbered, clusters).fetchall()
    if not all(is_clustered for *_, is_clustered in found):
        raise ValueError("the query yields other rows when it runs again\nHINT:  Store its rows in a table first.")
    return [Row(*values) for *values, _ in found]


def _sizes(groups: list[tuple[str, list[Row]]]) -> Chart:
    classes = Counter(bisect.bisect_left([size for size, _ in SIZES], len(group)) for _, group in groups)
    labels = [label for _, label in SIZES] + ["1000+"]
    counted = [(label, classes[place]) for place, label in enumerate(labels[: max(classes) + 1])]
    return bars("sizes", "Groups by number of documents", ("Documents", "Groups"), counted)


def _similarities(rows: list[Row], lowest: float, has_groups: bool) -> Chart:
    found = [row.similarity for row in rows if row.is_redundant and row.similarity is not None]
    # Groups of the query may be of a lower threshold.
    if has_groups:
        lowest = min([lowest, *(math.floor(similarity * 10) / 10 for similarity in found)])
    edges = sorted({round(lowest + (1 - lowest) * step / 10, 3) for step in range(1, 11)} | {lowest})
    counts = Counter(max(0, bisect.bisect_right(edges, similarity) - 1) for similarity in found)
    counted = [(f"{edge:g}", counts[place]) for place, edge in enumerate(edges)]
    title = "Redundant documents by similarity to the canonical one"
    return bars("similarities", title, ("Similarity from", "Documents"), counted)


def _sources(rows: list[Row]) -> list[tuple[str | None, Tally]]:
    by_source: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row.source].append(row)
    if set(by_source) <= {None}:
        return []
    tallies = [(source, Tally(of_source)) for source, of_source in by_source.items()]
    return sorted(tallies, key=lambda of: (-of[1].redundant, -of[1].documents, of[0] is None, of[0] or ""))


def _timeline(rows: list[Row]) -> tuple[Chart | None, int]:
    """Return the documents by day, month or year, and the number of those without a day.

    Uses the finest of these that needs few enough bars for nearly all documents. The few stray ones before and after these are
    one bar each, and so are the outermost days.
    """
    dated = sorted((row.day, row.is_redundant) for row in rows if row.day is not None)
    undated = len(rows) - len(dated)
    days = [day for day, _ in dated if day not in OUTERMOST]
    if not days:
        return None, len(rows)
    stray = max(len(days) // 200, len(days) >= 20)
    numbers: dict[str, Callable[[datetime.date], int]] = {
        "Day": datetime.date.toordinal,
        "Month": lambda day: day.year * 12 + day.month - 1,
        "Year": lambda day: day.year,
    }
    for period, number in numbers.items():
        first, last = number(days[stray]), number(days[-1 - stray])
        if last - first < PERIODS:
            break
    else:
        first = last - PERIODS + 1
    names: dict[str, Callable[[int], str]] = {
        "Day": lambda place: datetime.date.fromordinal(place).isoformat(),
        "Month": lambda place: f"{place // 12:04}-{place % 12 + 1:02}",
        "Year": lambda place: f"{place:04}",
    }
    # Without stray documents, the first and the last day have bars of their own.
    if number(days[-1]) - number(days[0]) < PERIODS:
        first, last = number(days[0]), number(days[-1])
    low, high = number(dated[0][0]), number(dated[-1][0])
    counts: dict[int, list[int]] = {place: [0, 0] for place in range(first - (low < first), last + 1 + (high > last))}
    for day, is_redundant in dated:
        bar = counts[min(max(number(day), first - 1), last + 1)]
        bar[0] += 1
        bar[1] += is_redundant

    def name(place: int) -> str:
        if place < first:
            return "before " + names[period](first)
        return "after " + names[period](last) if place > last else names[period](place)

    counted = [(name(place), *bar) for place, bar in counts.items()]
    return bars("time", f"Documents by {period.lower()}", (period, "Documents", "Redundant"), counted), undated


class Written(NamedTuple):
    """Groups as HTML, and the number of members without a view."""

    groups: list[str]
    without_view: int


def _groups(
    asked: UserQuery,
    names: list[str],
    groups: list[tuple[str, list[Row]]],
    room: int,
    progress: Callable[[str, int, int], None],
) -> Written:
    """Return as many groups as there is room for; views of both texts take up to two thirds of it."""
    chosen = []
    for key, group in groups:
        head = next((row for row in group if row.key == key), None)
        if head is None:
            raise ValueError(f"the query yields no row {key}, which is the canonical row of others")
        others = [row for row in group if row.is_redundant]
        others.sort(key=lambda row: row.similarity or 0.0)
        chosen.append((head, others[:MEMBERS], len(group)))
    template = templates().get_template("group.html")
    written: list[str] = []
    used = without_view = 0
    for start in range(0, len(chosen), 20):
        part = chosen[start : start + 20]
        texts = _texts(asked, names, [row for head, others, _ in part for row in (head, *others)])
        for head, others, count in part:
            progress("showing groups", len(written), len(chosen))
            canonical = _shown(head, texts)
            views = room * 2 // 3 - used
            members = [_member(canonical, row, texts, len(written) + 1, place) for place, row in enumerate(others)]
            left_out = 0
            for member in members:
                if member.view is not None:
                    size = 2 * (_viewed_bytes(canonical) + _viewed_bytes(member))
                    if size <= views:
                        views -= size
                    else:
                        member.view = None
                        left_out += 1
            html = template.render(place=len(written) + 1, documents=count, canonical=canonical, members=members)
            # Includes the line feed after it.
            size = len(html.encode()) + 1
            if used + size > room:
                return Written(written, without_view)
            used += size
            without_view += left_out
            written.append(Markup(html))
    return Written(written, without_view)


def _viewed_bytes(document: Shown) -> int:
    return len(document.text[:VIEWED_TEXT].encode())


def _texts(asked: UserQuery, names: list[str], rows: list[Row]) -> dict[str, str]:
    keys = sql.Literal([row.key for row in rows])
    found = asked.run("SELECT q.key::text, q.document FROM {} WHERE q.key::text = ANY ({}::text[])", asked.source(*names), keys)
    return {key: document or "" for key, document in found.fetchall()}


def _shown(row: Row, texts: dict[str, str]) -> Shown:
    # A row that has been deleted in the meantime has no text anymore.
    day = None if row.day in OUTERMOST else row.day
    return Shown(row.key or "NULL", row.source, day, texts.get(row.key or "", ""))


def _member(canonical: Shown, row: Row, texts: dict[str, str], group: int, place: int) -> Shown:
    member = _shown(row, texts)
    member.similarity = rounded(row.similarity or 0.0, 1, 3)
    docs = canonical.text, member.text
    if len(docs[0]) + len(docs[1]) <= EXPLAINED:
        member.explanation = explain(docs[0], docs[1], min_words=MIN_WORDS)
    if place < VIEWED and docs[0] != docs[1]:
        cut = [doc[:VIEWED_TEXT] for doc in docs]
        is_whole = cut == list(docs)
        explanation = member.explanation if is_whole and member.explanation else explain(cut[0], cut[1], min_words=MIN_WORDS)
        first, second = (f" in the first {VIEWED_TEXT} characters" if len(doc) > VIEWED_TEXT else "" for doc in docs)
        names = canonical.key[:120], member.key[:120]
        member.view = Pair(explanation, names, f"v{group}-{place}", 5, (first, second))
    return member
