"""HTML pages from templates: nothing in a document acts as markup, and control characters are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

from ._exact import Explanation, Segment, explain, resemblance

MAX_PAGE_INPUT = 1 << 24
"""Maximum number of characters of both documents together: a page has up to 35 characters for each of these."""

HOVERED = 300
"""Maximum number of common runs whose other occurrence is highlighted under the pointer: browsers get slow with thousands of rules."""

RIBBONS = 1000
"""Maximum number of ribbons of a map, the longest runs first: more of them would cover each other."""

BLOCK = 4096
"""Maximum number of characters in a block of a page: browsers lay out a block as a whole, and skip one that is out of sight."""

# Controls and format characters, line and paragraph separators, noncharacters and surrogates: they could hide text,
# reorder it or be lost on the way. Line feed, tab, and the joiners of Persian, Indian scripts and emoji stay.
_MARKED = re.compile(
    "([\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + "]+)(?=(\n?))"
)


def shown(text: str, limit: int | None = None) -> Any:
    """Return the HTML with which a browser shows exactly this text, cut after ``limit`` characters."""
    from markupsafe import Markup, escape

    is_cut = limit is not None and len(text) > limit
    pieces, end = [], 0
    text = text[:limit]
    for found in _MARKED.finditer(text):
        marked = found[1].removesuffix("\r") if found[2] else found[1]
        pieces.append(escape(text[end : found.start()]))
        if marked:
            pieces.append(Markup("<i>%s</i>") % "".join(map(_mark, marked)))
        end = found.end()
    pieces.append(escape(text[end:]))
    return Markup("").join(pieces) + ("…" if is_cut else "")


def _mark(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"U+{code:04X} "


def number(count: int) -> str:
    """Return a number with commas between thousands."""
    return f"{count:,}"


def percent(share: float) -> str:
    """Return a share in percent with one decimal; only 0 is shown as 0, and only 1 as 100."""
    return rounded(100 * share, 100, 1) + "\u00a0%"


def rounded(value: float, whole: float, decimals: int) -> str:
    """Return a value from 0 to ``whole``; one that rounding would make 0 or ``whole`` is written with < or >."""
    text = f"{value:.{decimals}f}"
    least = 10.0**-decimals
    if value > 0 and text == f"{0:.{decimals}f}":
        return f"<\u00a0{least:.{decimals}f}"
    if value < whole and text == f"{whole:.{decimals}f}":
        return f">\u00a0{whole - least:.{decimals}f}"
    return text


def missing(error: ImportError) -> ImportError:
    """Return the error that names the extra that provides a missing library."""
    return ImportError(f"{error}. Install the extra lab of this package; psycopg also needs libpq, or psycopg[binary].")


@cache
def templates() -> Any:
    """Return the environment of the templates.

    Raises ImportError if jinja2 is missing.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise missing(error) from error
    environment = Environment(
        loader=PackageLoader("neardup", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters |= {"shown": shown, "number": number, "percent": percent}
    return environment


class Piece(NamedTuple):
    """A part of a segment within one block."""

    text: str
    standing: str
    chunk: int | None
    begins: bool

    @property
    def hue(self) -> int:
        """The color of a common run, an angle from cyan to magenta, since red and green mark words of one side.

        Steps of the golden ratio keep neighbors apart, however many there are.
        """
        return 190 + int((self.chunk or 0) * 0.618034 % 1 * 120)


def blocks(segments: list[Segment]) -> list[list[Piece]]:
    """Return segments cut into blocks, which end after a line or at `BLOCK` characters."""
    found: list[list[Piece]] = [[]]
    length = 0
    for segment in segments:
        begins = True
        for line in segment.text.splitlines(keepends=True) or [""]:
            for start in range(0, max(len(line), 1), BLOCK):
                text = line[start : start + BLOCK]
                if length + len(text) > BLOCK or (length > BLOCK // 4 and found[-1] and found[-1][-1].text.endswith("\n")):
                    found.append([])
                    length = 0
                    last = None
                else:
                    last = found[-1].pop() if not begins else None
                is_first = last.begins if last else begins
                text = (last.text if last else "") + text
                found[-1].append(Piece(text, segment.standing, segment.chunk, is_first))
                length += len(line[start : start + BLOCK])
                begins = False
    return found


class Column(NamedTuple):
    """One document of a pair."""

    id: str
    name: str
    note: str
    segments: list[Segment]
    element: str
    own: str
    other: str

    @property
    def words(self) -> int:
        return sum(segment.words for segment in self.segments)

    @property
    def blocks(self) -> list[list[Piece]]:
        return blocks(self.segments)


class Pair:
    """Two documents side by side, as the templates show them."""

    def __init__(
        self, explanation: Explanation, names: tuple[str, str], prefix: str = "", level: int = 2, note: tuple[str, str] = ("", "")
    ) -> None:
        """``prefix`` begins the identifiers of a pair that is not alone on its page."""
        self.explanation = explanation
        self.is_panes = not prefix
        self.run = "a" if self.is_panes else "mark"
        self.level = level
        sides = zip("AB", names, note, (explanation.a, explanation.b), ("del", "ins"), "ab", "ba")
        self.columns = [Column(prefix + side, *rest) for side, *rest in sides]

    @cached_property
    def places(self) -> list[tuple[int, int, int, int]]:
        """Number, first word in both documents, and words of each common run, the longest first."""
        first: list[dict[int, tuple[int, int]]] = []
        for column in self.columns:
            word, found = 0, {}
            for segment in column.segments:
                if segment.chunk is not None:
                    found[segment.chunk] = (word, segment.words)
                word += segment.words
            first.append(found)
        places = [(chunk, a, first[1][chunk][0], words) for chunk, (a, words) in first[0].items()]
        return sorted(places, key=lambda place: (-place[3], place[0]))

    @property
    def longest(self) -> list[int]:
        return [place[0] for place in self.places[:HOVERED]]

    def _scaled(self, word: int) -> float:
        longer = max(1, *(column.words for column in self.columns))
        return round(1000 * word / longer, 1)

    @property
    def bars(self) -> list[float]:
        return [self._scaled(column.words) for column in self.columns]

    @property
    def ribbons(self) -> Iterator[tuple[Any, ...]]:
        for chunk, a, b, words in self.places[:RIBBONS]:
            hue = Piece("", "", chunk, True).hue
            yield hue, *map(self._scaled, (a, a + words, b, b + words))

    @property
    def runs(self) -> int:
        return len(self.places)

    @property
    def moved(self) -> int:
        return sum(segment.standing == "moved" for segment in self.columns[0].segments)

    @property
    def common(self) -> int:
        return sum(place[3] for place in self.places)

    @property
    def s_l(self) -> float:
        return self.common / max(1, *(column.words for column in self.columns))

    @property
    def s_j(self) -> float:
        return self.common / max(1, sum(column.words for column in self.columns) - self.common)


def diff_html(a: str, b: str, min_words: int = 5) -> str:
    """Return an HTML page that shows two documents side by side, with common runs in the same color.

    Each common run of at least ``min_words`` words is numbered and linked to its other occurrence. The page has no
    scripts and loads nothing; nothing in the documents acts as markup. Raises ValueError above `MAX_PAGE_INPUT`
    characters, ImportError if jinja2 is missing.
    """
    if len(a) + len(b) > MAX_PAGE_INPUT:
        raise ValueError(f"the documents have more than {MAX_PAGE_INPUT} characters")
    page = templates().get_template("diff.html")
    pair = Pair(explain(a, b, min_words), ("A", "B"))
    return str(page.render(pair=pair, resemblance=resemblance(a, b), min_words=min_words))
