"""Compares every value and every error of the package with the server's.

Argument: connection string of a database with a table docs (id bigint, body text).
"""

import collections
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time

import neardup
import neardup.psycopg
import numpy
import pandas
import polars
import psycopg
import pyarrow

[dsn] = sys.argv[1:]
conn = psycopg.connect(dsn, autocommit=True)
neardup.psycopg.register(conn)
UNITS, FOLDS = ("word", "char", "stop"), ("none", "case", "marks")
ODD = [
    None,
    "",
    " \t\n",
    "one",
    "The of and",
    "Straße ½ ÉCOLE e\u0301cole ﬁne \u00adsoft",
    "東京タワー 2024 ที่นี่ ภาษา",
    "كِتَاب كتاب שָׁלוֹם",
    "👩\u200d👩\u200d👧 \U0001d400\U0001e900",
    "\u0301\u0301a\u0327\u0301" * 50,
    "word " * 70000,
]


def server(query, *parameters):
    return [row[0] for row in conn.execute(query, parameters).fetchall()]


def equal(ours, theirs, label):
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, f"{label}, document {i}: {str(one)[:200]} is not {str(other)[:200]}"


def compare_documents(documents):
    """Compare every unit and fold with the defaults of the other arguments, and some of them with other values."""
    conn.execute("CREATE TEMP TABLE bodies (id int PRIMARY KEY, body text)")
    with conn.cursor().copy("COPY bodies FROM STDIN") as copy:
        for row in enumerate(documents):
            copy.write_row(row)
    few = documents[:100]
    count = 0
    for unit, fold in itertools.product(UNITS, FOLDS):
        theirs = server("SELECT minhash(body, 3, %s, %s)::bytea FROM bodies ORDER BY id", unit, fold)
        equal(neardup.signatures(documents, 3, unit, fold), theirs, f"signatures, {unit}, {fold}")
        count += len(documents)
        for k, slots, seed in ((1, 1, 0), (5, 200, -1), (256, 1024, 2**63 - 1)):
            parameters = k, unit, fold, slots, seed
            query = "SELECT minhash(body, %s, %s, %s, %s, %s)::bytea FROM bodies WHERE id < 100 ORDER BY id"
            equal(neardup.signatures(few, *parameters), server(query, *parameters), parameters)
        for bits, weighting in ((64, "log"), (192, "tf"), (64, "set")):
            parameters = 2, unit, fold, bits, weighting, 7
            query = "SELECT simhash(body, %s, %s, %s, %s, %s, %s)::text FROM bodies WHERE id < 100 ORDER BY id"
            equal(neardup.simhashes(few, *parameters), server(query, *parameters), parameters)
        for k, window in ((3, 4), (1, 50)):
            parameters = k, window, unit, fold, 7
            query = "SELECT winnow(body, %s, %s, %s, %s, %s) FROM bodies WHERE id < 100 ORDER BY id"
            equal(neardup.winnow(few, *parameters), server(query, *parameters), parameters)
    return count


def compare_exact(documents):
    """Check that exact measures of similar and of unrelated pairs, and shingles, equal the server's."""
    few = documents[:120]
    a = few + few
    b = few[1:] + few[:1] + [None if text is None else text[3:] + " 12 " + text[:40] for text in few]
    short = [None if text is None else text[:300] for text in a], [None if text is None else text[:300] for text in b]
    conn.execute("CREATE TEMP TABLE pairs (id int PRIMARY KEY, a text, b text)")
    with conn.cursor().copy("COPY pairs FROM STDIN") as copy:
        for number, pair in enumerate(zip(a, b, strict=True)):
            copy.write_row((number, *pair))
    for unit, fold, k in itertools.product(UNITS, FOLDS, (1, 3)):
        parameters = k, unit, fold
        for name, ours in (("resemblance", neardup.resemblance), ("containment", neardup.containment)):
            theirs = server(f"SELECT {name}(a, b, %s, %s, %s) FROM pairs ORDER BY id", *parameters)
            equal(ours(a, b, *parameters), theirs, f"{name}, {parameters}")
        query = "SELECT shingles(body, %s, %s, %s) FROM bodies WHERE id < 120 ORDER BY id"
        equal(neardup.shingles(few, *parameters), server(query, *parameters), f"shingles, {parameters}")
        query = "SELECT shingle_hashes(body, %s, %s, %s, 7) FROM bodies WHERE id < 120 ORDER BY id"
        equal(neardup.shingle_hashes(few, *parameters, 7), server(query, *parameters), f"hashes, {parameters}")
    for costs in ((1, 1, 1, None), (2, 3, 4, None), (1, 1, 2, 40)):
        query = "SELECT edit_distance(left(a, 300), left(b, 300), %s, %s, %s, %s) FROM pairs ORDER BY id"
        equal(neardup.edit_distance(*short, *costs), server(query, *costs), f"edit_distance, {costs}")
    query = "SELECT (e).kind, (e).similarity, (e).words_only_in_a, (e).words_only_in_b FROM (SELECT id, near_dup_explain(a, b) AS e FROM pairs) e ORDER BY id"
    theirs = [row if row[0] is not None else None for row in conn.execute(query).fetchall()]
    explained = neardup.explain(a, b)
    equal([None if found is None else tuple(found[:4]) for found in explained], theirs, "explain")
    for one, other, found in zip(a, b, explained, strict=True):
        if found is not None:
            check_segments(one, other, found)
    # Single texts, and other kinds of columns.
    assert neardup.resemblance(None, "a") is neardup.explain("a", None) is neardup.edit_distance(None, None) is None
    assert neardup.edit_distance("a", "b", max=2**70) == 1
    assert neardup.containment(None, "a") is neardup.shingles(None) is neardup.shingle_hashes(None) is None
    for column in (tuple(few), iter(few), numpy.array(few, dtype=object), pandas.Series(few), pyarrow.array(few), polars.Series(few)):
        assert neardup.resemblance(column, few) == neardup.resemblance(few, few)
    for wrong in (few[1:], "a text", 5):
        try:
            neardup.resemblance(wrong, few)
            raise AssertionError(f"{wrong} was taken")
        except (TypeError, ValueError):
            pass
    return 20 * len(a)


def check_segments(a, b, found):
    """Check that both documents are cut without gaps, with the same common runs."""
    runs = []
    for text, segments in ((a, found.a), (b, found.b)):
        assert "".join(segment.text for segment in segments) == text
        runs.append({segment.chunk: neardup.shingles(segment.text, 1) for segment in segments if segment.chunk is not None})
        for segment in segments:
            assert (segment.chunk is not None) == (segment.standing in ("chunk", "moved")), segment
            assert segment.chunk is None or segment.words >= 5, segment
    assert runs[0] == runs[1], runs


class Lacking(collections.UserList):
    """Behaves like a pandas Series without pyarrow."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise ImportError("pyarrow")


def compare_columns(texts):
    """Check that the same texts in every kind of column have the same signatures."""
    expected = neardup.signatures(texts)
    assert [None if text is None else neardup.signature(text) for text in texts] == expected
    half = len(texts) // 2
    chunks = [texts[:half], texts[half:]]
    columns = [
        tuple(texts),
        iter(texts),
        dict(enumerate(texts)).values(),
        collections.UserList(texts),
        Lacking(texts),
        numpy.array(texts, dtype=object),
        pandas.Series(texts),
        pandas.Series(texts, dtype=object),
        pandas.Series([float("nan") if text is None else text for text in texts], dtype=object),
        pandas.Series(texts, dtype="string[python]"),
        pandas.Series(texts, dtype="string[pyarrow]"),
        pyarrow.array(["left out", *texts])[1:],
        pyarrow.array(texts, pyarrow.large_string()),
        pyarrow.array(texts, pyarrow.string_view()),
        pyarrow.array([None if text is None else text.encode() for text in texts], pyarrow.binary()),
        pandas.Series(texts, dtype="category"),
        pandas.Series(texts, dtype=object).astype("category"),
        pyarrow.array(["left out", *texts])[1:].dictionary_encode(),
        pyarrow.array(["left out", *texts]).dictionary_encode()[1:],
        pyarrow.array(texts, pyarrow.large_string()).dictionary_encode("encode"),
        pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(range(len(texts)), pyarrow.uint8()), pyarrow.array(texts, pyarrow.string_view())
        ),
        pyarrow.chunked_array(chunks).dictionary_encode(),
        polars.Series(texts),
        polars.Series(texts, dtype=polars.Categorical),
        polars.Series(texts, dtype=polars.Enum([text for text in texts if text is not None])),
        pyarrow.chunked_array(chunks),
        pyarrow.chunked_array(chunks, pyarrow.string_view()),
    ]
    for column in columns:
        assert neardup.signatures(column) == expected, type(column)
    full = [text for text in texts if text]
    assert neardup.signatures(numpy.array(full)) == neardup.signatures(full)
    for nothing in ([], numpy.array([]), pyarrow.array([], pyarrow.string()), pyarrow.chunked_array([], pyarrow.string())):
        assert neardup.signatures(nothing) == []
    assert neardup.signatures(pyarrow.nulls(3)) == [None] * 3
    assert neardup.signatures(pandas.Series([float("nan"), None])) == [None] * 2
    numbers = pyarrow.array([1]).dictionary_encode(), pandas.Series([0.5, None]), 5
    wrong = "a text", b"bytes", [1], [b"bytes"], pyarrow.array([1]), *numbers, pyarrow.table({"a": ["x"]}), numpy.array("a text")
    for column in wrong:
        try:
            neardup.signatures(column)
        except TypeError:
            continue
        raise AssertionError(f"{column} was taken for texts")


def name_items():
    """Check that errors of single items name the item, and that None gives None everywhere."""
    signature = neardup.signature("some text")
    other = neardup.signature("some text", 5)
    calls = {
        "item 2: a text or None expected, not int": lambda: neardup.signatures(["a", None, 3]),
        "item 1: UnicodeEncodeError: 'utf-8' codec": lambda: neardup.simhashes(["a", "\ud800"]),
        "item 1: a bytes object or None expected, not str": lambda: neardup.distances(signature, [None, "a"]),
        "item 2: signatures made with different": lambda: neardup.distances(signature, [signature, None, other]),
        "item 1: a text, an integer of 64 bits or None expected, not float": lambda: neardup.set_signature(["a", 1.5]),
        "item 0: a text, an integer of 64 bits or None expected, not int": lambda: neardup.set_signature([2**63]),
        "put it into a list": lambda: neardup.set_signature("abc"),
        "'float' object cannot be interpreted as an integer": lambda: neardup.bands(signature, 16.9, 8),
        "seed = 9223372036854775808 is out of range\nHINT:  Valid values are -9223372036854775808 to":
            lambda: neardup.signature("a", seed=2**63),
        "seed = -9223372036854775809 is out of range": lambda: neardup.winnow(["a"], 1, 1, seed=-(2**63) - 1),
        "k = 9223372036854775807 is out of range\nHINT:  Valid values are 1 to 256.": lambda: neardup.simhash("a", 2**70),
    }
    for message, call in calls.items():
        try:
            call()
            raise AssertionError(f"no error: {message}")
        except (TypeError, ValueError) as error:
            assert message in str(error), f"{error} is not {message}"
    # Of several errors, the first is raised, whichever thread finds it.
    column = [signature] * 10_000
    column[4000], column[7000], column[9000] = other, other, "a"
    for _ in range(50):
        try:
            neardup.distances(signature, column)
            raise AssertionError("no error")
        except ValueError as error:
            assert "item 4000:" in str(error), error
    assert neardup.signature(None) is neardup.simhash(None) is None
    assert neardup.signatures([None]) == neardup.simhashes([None]) == neardup.winnow([None], 1, 1) == [None]


def compare_values(documents):
    """Check that measures of two signatures, and signatures made from them, equal the server's."""
    signatures = neardup.signatures(documents[:60])
    conn.execute("CREATE TEMP TABLE signed (id int, sig minhash_signature)")
    with conn.cursor().copy("COPY signed FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "minhash_signature"])
        for row in enumerate(signatures):
            copy.write_row(row)
    stored = "SELECT sig::bytea FROM signed ORDER BY id"
    equal(signatures, server(stored), "COPY in binary")
    equal(signatures, server("SELECT minhash(body)::bytea FROM bodies WHERE id < 60 ORDER BY id"), "stored")
    present = [signature for signature in signatures if signature is not None]
    query = (
        "SELECT minhash_sim(a, b), a <=> b, near_dup(a, b, 0.5), minhash_containment(a, b), a || b,"
        " minhash_pack(a, 4), minhash_interval(a, b, 0.9), minhash_cardinality(a), minhash_bands(a, 0.7),"
        " minhash_bands(a, 16, 8), a::text, (minhash_describe(a)).parameters"
        " FROM (SELECT %b::minhash_signature, %b::minhash_signature) v (a, b)"
    )
    for a, b in itertools.product(present[:15], present[-15:]):
        theirs = conn.execute(query, (a, b)).fetchone()
        interval = neardup.interval(a, b, 0.9)
        ours = (
            neardup.sim(a, b),
            neardup.distance(a, b),
            neardup.near_dup(a, b, 0.5),
            neardup.containment(a, b),
            neardup.union(a, b),
            neardup.pack(a, 4),
            tuple(map(str, interval)),
            neardup.cardinality(a),
            neardup.bands(a, 0.7),
            neardup.bands(a, 16, 8),
            str(a),
            a.describe(),
        )
        theirs = (*theirs[:6], tuple(str(float(limit)) for limit in theirs[6]), *theirs[7:])
        equal(ours, theirs, "values")
        assert neardup.Signature.parse(str(a)) == neardup.Signature(bytes(a)) == a
    expected = server("SELECT %b::minhash_signature <=> sig FROM signed ORDER BY id", present[0])
    for column in (signatures, pyarrow.array(signatures, pyarrow.binary())):
        equal(neardup.distances(present[0], column), expected, "distances")
    sets = ["a", "b", "a", "Ä"], [3, 1, 2**63 - 1, -5], []
    for elements, kind in zip(sets, ("text", "bigint", "text"), strict=True):
        theirs = server(f"SELECT minhash(%s::{kind}[], 64, 9)::bytea", elements)
        assert [neardup.set_signature([*elements, None], 64, 9)] == theirs
    united = neardup.union(*present)
    assert [united] == server("SELECT minhash_union(sig)::bytea FROM signed")


def compare_errors():
    """Check that errors have the server's message and hint."""
    a, b = neardup.signature("some text"), neardup.signature("some text", 5)
    packed = neardup.pack(a, 8)
    errors = {
        "SELECT minhash('x', 0)": lambda: neardup.signature("x", 0),
        "SELECT minhash('x', 257)": lambda: neardup.signatures([], 257),
        "SELECT minhash('x', 3, 'page')": lambda: neardup.signature("x", unit="page"),
        "SELECT minhash('x', 3, 'word', 'all')": lambda: neardup.signature("x", fold="all"),
        "SELECT minhash('x', slots => 1025)": lambda: neardup.signature("x", slots=1025),
        "SELECT minhash('{}'::text[], 0)": lambda: neardup.set_signature([], 0),
        "SELECT simhash('x', bits => 65)": lambda: neardup.simhash("x", bits=65),
        "SELECT simhash('x', weighting => 'x')": lambda: neardup.simhash("x", weighting="x"),
        "SELECT winnow('x', 1, 0)": lambda: neardup.winnow(["x"], 1, 0),
        f"SELECT minhash_sim('{a}', '{b}')": lambda: neardup.sim(a, b),
        f"SELECT minhash_distance('{a}', '{b}')": lambda: neardup.distance(a, b),
        f"SELECT minhash_union('{a}', '{b}')": lambda: neardup.union(a, b),
        f"SELECT minhash_union('{packed}', '{packed}')": lambda: neardup.union(packed, packed),
        f"SELECT minhash_pack('{a}', 3)": lambda: neardup.pack(a, 3),
        f"SELECT near_dup('{a}'::minhash_signature, '{a}', 1.5)": lambda: neardup.near_dup(a, a, 1.5),
        f"SELECT minhash_interval('{a}', '{a}', 1)": lambda: neardup.interval(a, a, 1),
        f"SELECT minhash_bands('{a}', 0)": lambda: neardup.bands(a, 0.0),
        f"SELECT minhash_bands('{a}', 20, 20)": lambda: neardup.bands(a, 20, 20),
        f"SELECT minhash_containment('{packed}', '{packed}')": lambda: neardup.containment(packed, packed),
        f"SELECT minhash_cardinality('{packed}')": lambda: neardup.cardinality(packed),
        "SELECT resemblance('x', 'y', 0)": lambda: neardup.resemblance("x", "y", 0),
        "SELECT containment('x', 'y', 3, 'page')": lambda: neardup.containment("x", "y", unit="page"),
        "SELECT shingles('x', fold => 'all')": lambda: neardup.shingles("x", fold="all"),
        "SELECT shingle_hashes('x', 257)": lambda: neardup.shingle_hashes(["x"], 257),
        "SELECT edit_distance('x', 'y', -1)": lambda: neardup.edit_distance("x", "y", -1),
        f"SELECT edit_distance('x', 'y', max => '{-2**63}')": lambda: neardup.edit_distance("x", "y", max=-2**70),
        "SELECT chunk_similarity('x', 'y', 0)": lambda: neardup.explain("x", "y", 0),
        "SELECT 'minhash:2'::minhash_signature": lambda: neardup.Signature.parse("minhash:2"),
        "SELECT '\\x0203'::bytea::minhash_signature": lambda: neardup.Signature(b"\x02\x03"),
        "SELECT minhash_union('\\x0203'::bytea::minhash_signature)": lambda: neardup.union(b"\x02\x03"),
        f"SELECT minhash_union('{packed}'::minhash_signature)": lambda: neardup.union(packed),
    }
    for query, ours in errors.items():
        try:
            conn.execute(query)
            raise AssertionError(f"no error from {query}")
        except psycopg.Error as error:
            hint = error.diag.message_hint.replace("minhash('some text')", "neardup.signature(text)")
            expected = f"{error.diag.message_primary}\nHINT:  {hint}"
        try:
            ours()
            raise AssertionError(f"no error where the server has one for {query}")
        except ValueError as error:
            assert str(error) == expected, f"{error} is not {expected}"
    return len(errors)


def interrupt():
    """Check that Ctrl-C ends a long call, and that a forked child can call again."""
    program = (
        # A background job of a shell ignores SIGINT, and so do its children.
        "import neardup, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "texts = [' '.join(map(str, range(i, i + 3000))) for i in range(100)] * 3000\n"
        "print('ready', flush=True)\ntry: neardup.signatures(texts, slots=1024)\nexcept KeyboardInterrupt: sys.exit(42)"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 42, child.returncode
    if (pid := os.fork()) == 0:
        os._exit(int(neardup.signatures(["a b c"] * 5000)[0] is None))
    assert os.waitpid(pid, 0)[1] == 0


def no_threads():
    """Check that a call works where the system starts no more threads, which holds for root only as another user."""
    program = (
        "import neardup, os, resource\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "found = neardup.signatures(['a text of some words ' * 200] * 5000)\n"
        "print(len(found), len(set(found)), found[0] == neardup.signature('a text of some words ' * 200))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5000 1 True\n", ""), done


documents = ODD + server("SELECT body FROM docs ORDER BY id")
count = compare_documents(documents)
compare_columns(ODD)
name_items()
exact = compare_exact(documents)
compare_values(documents)
errors = compare_errors()
interrupt()
no_threads()
typed = pathlib.Path(neardup.__file__).with_name("py.typed")
assert typed.exists() and neardup.__version__ == server("SELECT pg_neardup_version()")[0]
print(f"{count} signatures, {exact} exact values and {errors} errors equal the server's")
