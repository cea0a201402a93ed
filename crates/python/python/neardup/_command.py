"""The command ``neardup``."""

from __future__ import annotations

import csv
import io
import os
import pathlib
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import IO, Any

from . import __version__, diff_html
from ._html import missing

try:
    import click
    import psycopg
except ImportError as error:  # pragma: no cover
    sys.exit(f"neardup: {missing(error)}")


class Failure(click.ClickException):
    """An error, reported in one line."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo("neardup: " + " ".join(self.message.split()), err=True)


@contextmanager
def told() -> Iterator[None]:
    """Report errors of users and servers in one line."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Failure("interrupted") from error
    except psycopg.Error as error:
        said, hint = error.diag.message_primary or str(error), error.diag.message_hint
        if isinstance(error, psycopg.errors.UndefinedFunction) and "near_dup" in said:
            hint = "CREATE EXTENSION pg_neardup in this database if it is missing, or put its schema into search_path."
        raise Failure(said + (f" HINT: {hint}" if hint else "")) from error
    except UnicodeDecodeError as error:
        raise Failure(f"a text is not valid UTF-8: {error}") from error
    except (ValueError, ImportError, OSError, KeyError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise Failure(str(error)) from error


class Progress:
    """A line of progress on a terminal: stage, share done, and time left."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty()
        self.length = 0

    def show(self, stage: str, done: int, total: int, left: str = "") -> None:
        if self.is_shown:
            share = min(1.0, done / total) if total else 0.0
            bar = "#" * round(24 * share) + "." * round(24 * (1 - share))
            self._write(f"{stage} [{bar}] {done:,} of {total:,}{left}")

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self.length))
        sys.stderr.flush()
        self.length = len(line)

    def end(self) -> None:
        if self.length:
            self._write("")
            sys.stderr.write("\r")

    @contextmanager
    def of_server(self, dsn: str, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Show the progress of a connection's queries, from ``pg_stat_activity``, until the end of the block."""
        ended = threading.Event()
        pid = connection.info.backend_pid
        query = r"SELECT substring(query FROM '/\* pg_neardup: (.*?) \*/') FROM pg_stat_activity WHERE pid = %s"

        def watch() -> None:
            # The command goes on without progress if there is no second connection.
            with suppress(psycopg.Error), connection_to(dsn, autocommit=True) as watching:
                while not ended.wait(0.5):
                    row = watching.execute(query, [pid]).fetchone()
                    if row and row[0]:
                        self._show_activity(row[0])

        watcher = threading.Thread(target=watch, daemon=True)
        if self.is_shown:
            watcher.start()
        try:
            yield
        finally:
            ended.set()
            if self.is_shown:
                watcher.join(2)
            self.end()

    def _show_activity(self, activity: str) -> None:
        """Show ``stage: done of total, 8 s left``."""
        stage, _, rest = activity.partition(": ")
        counts, _, left = rest.partition(", ")
        numbers = counts.split(" of ")
        if len(numbers) == 2 and all(part.isdigit() for part in numbers):
            self.show(stage, int(numbers[0]), int(numbers[1]), f", {left}" if left else "")
        else:
            self._write(activity)


def connection_to(dsn: str, **options: Any) -> psycopg.Connection[Any]:
    """Connect, with texts as UTF-8: without an encoding, as in a database of SQL_ASCII, psycopg returns bytes."""
    return psycopg.connect(dsn, client_encoding="UTF8", **options)


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect, and read under one snapshot."""
    with closing(connection_to(dsn, application_name="neardup")) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            yield connection
        except KeyboardInterrupt:
            # It can come where psycopg does not wait for the server, and does not cancel the query itself.
            connection.cancel()
            raise


def write(output: str, text: str) -> None:
    """Write a file, or standard output for ``-``."""
    if output == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        pathlib.Path(output).write_text(text, encoding="utf-8", newline="")


OUTPUT = click.option("-o", "--output", default="-", help="File to write; - is standard output.", show_default=True)


@click.group()
@click.version_option(__version__)
def commands() -> None:
    """Look at near-duplicates in a PostgreSQL database: reports, samples to label, calibration, differences."""


@commands.command()
@click.argument("dsn")
@click.argument("query")
@click.option("-t", "--threshold", type=float, default=0.8, show_default=True)
@click.option("--title", default="Near-duplicates", show_default=True)
@click.option("--groups", type=click.IntRange(0), default=100, show_default=True, help="Groups to show.")
@click.option("--max-bytes", type=click.IntRange(100_000), default=3_000_000, show_default=True)
@OUTPUT
def report(dsn: str, query: str, threshold: float, title: str, groups: int, max_bytes: int, output: str) -> None:
    """Make a page about the near-duplicates among the rows (key, document) of QUERY."""
    from . import lab

    progress = Progress()
    with told(), connected(dsn) as connection, progress.of_server(dsn, connection):
        page = lab.report(
            connection, query, threshold, title=title, groups=groups, max_bytes=max_bytes, progress=progress.show
        )
    with told():
        write(output, page)


@commands.command()
@click.argument("dsn")
@click.argument("query")
@click.option("-n", "--pairs", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("-k", type=int, default=3, show_default=True)
@click.option("--unit", default="word", show_default=True)
@click.option("--fold", default="case", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@OUTPUT
def sample(dsn: str, query: str, pairs: int, k: int, unit: str, fold: str, seed: int, output: str) -> None:
    """Draw pairs to label from the rows (key, document) of QUERY, as CSV with an empty column "same"."""
    from . import lab
    from .lab._sample import HEADER

    progress = Progress()
    with told(), connected(dsn) as connection, progress.of_server(dsn, connection):
        rows = lab.sample(connection, query, pairs, k, unit, fold, seed=seed)
    with told(), open(output, "w", encoding="utf-8", newline="") if output != "-" else sys.stdout as file:
        table = csv.writer(file)
        table.writerow(HEADER)
        table.writerows([*map(as_cell, row), ""] for row in rows)
        file.flush()


FORMULA = "[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]"
"""A character with which a cell begins that a spreadsheet takes for a formula."""


def as_cell(value: Any) -> Any:
    """Return a text with an apostrophe before it if a spreadsheet would take it for a formula."""
    return f"'{value}" if isinstance(value, str) and re.match(f"'*{FORMULA}", value) else value


def of_cell(text: str | None) -> str | None:
    """Return the text of which `as_cell` has made a cell; None for a cell that is missing."""
    return text[1:] if text and re.match(f"'+{FORMULA}", text) else text


YES, NO = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")


def labeled(path: str) -> list[tuple[Any, ...]]:
    """Return the pairs of a file, with None in place of an empty label.

    Raises ValueError for a file that is not a sample, and for a label other than yes or no.
    """
    csv.field_size_limit(1 << 30)
    # Spreadsheets begin a file with a byte order mark.
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        lacking = {"a", "b", "same"} - set(rows.fieldnames or ())
        if lacking:
            raise ValueError(f"{path} has no column {', '.join(sorted(lacking))}")
        pairs = []
        for row in rows:
            label = (row["same"] or "").strip().lower()
            if label and label not in YES + NO:
                raise ValueError(f"{path}, line {rows.line_num}: same is yes or no, not {label!r}")
            weight = (float(row["weight"]),) if row.get("weight") else ()
            pairs.append((of_cell(row["a"]), of_cell(row["b"]), label in YES if label else None, *weight))
    return pairs


@commands.command()
@click.argument("labels", type=click.Path(exists=True, dir_okay=False))
@click.option("-k", type=int, multiple=True, default=(1, 2, 3, 4, 5, 8, 12), show_default=True)
@click.option("--unit", multiple=True, default=("word", "char"), show_default=True)
@click.option("--fold", multiple=True, default=("none", "case", "marks"), show_default=True)
@click.option("--precision", type=click.FloatRange(0, 1), help="Wanted precision, in place of the best F1.")
@click.option("--recall", type=click.FloatRange(0, 1), help="Wanted recall, in place of the best F1.")
@click.option("-o", "--output", help="File for the picture of the best one, as SVG.")
def calibrate(
    labels: str,
    k: tuple[int, ...],
    unit: tuple[str, ...],
    fold: tuple[str, ...],
    precision: float | None,
    recall: float | None,
    output: str | None,
) -> None:
    """Print how well each way to compare tells the labeled pairs of a file apart, the best first."""
    from . import lab

    with told():
        found = lab.calibrate(labeled(labels), k, unit, fold, precision=precision, recall=recall)
        write("-", f"{found}\n")
        if output:
            write(output, found.svg())


@commands.command()
@click.argument("a", type=click.Path(exists=True, dir_okay=False))
@click.argument("b", type=click.Path(exists=True, dir_okay=False))
@click.option("--min-words", type=click.IntRange(1), default=5, show_default=True, help="Words of a common run.")
@OUTPUT
def diff(a: str, b: str, min_words: int, output: str) -> None:
    """Show two text files side by side as an HTML page."""
    with told():
        one, other = (pathlib.Path(path).read_text(encoding="utf-8", errors="replace") for path in (a, b))
        write(output, diff_html(one, other, min_words))


def main() -> None:
    """Run the command."""
    # Pages and samples do not depend on the locale.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    try:
        commands.main(standalone_mode=False)
    except click.Abort:
        sys.exit("neardup: interrupted")
    except KeyboardInterrupt:
        sys.exit("neardup: interrupted")
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Python flushes standard output once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
