"""Runs the SQL, the commands and the snippets of a page in order, and compares their output.

Arguments: connection string, page, directory in which the commands run. What a command or snippet prints is compared
with the block of text after it. A block of CSV is a file that the user has filled in: except for the column `same`, it
equals the previous content.
"""

import contextlib
import csv
import io
import os
import pathlib
import re
import subprocess
import sys

import psycopg

dsn, page, directory = sys.argv[1:]
text = pathlib.Path(page).read_text(encoding="utf-8")
blocks = re.findall(r"```(\w+)([^\n]*)\n(.*?)```", text, re.S)
runs = [place for place, (kind, _, _) in enumerate(blocks) if kind in ("sh", "python")]
connection = psycopg.connect(dsn, autocommit=True)
os.chdir(directory)
environment = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
count = 0


def compare(printed, place):
    following = blocks[place + 1 : place + 2]
    expected = following[0][2] if following and following[0][0] == "text" else ""
    assert printed == expected, f"{blocks[place][2]}\nprinted:\n{printed}\nnot:\n{expected}"


for place, (kind, flags, code) in enumerate(blocks[: max(runs) + 1]):
    if kind == "sql" and "no-run" not in flags:
        connection.execute(code)
    elif kind == "csv":
        file = pathlib.Path(flags.strip())
        filled, drawn = (list(csv.DictReader(io.StringIO(table))) for table in (code, file.read_text(encoding="utf-8")))
        for row in (*filled, *drawn):
            del row["same"]
        assert filled == drawn, f"{file} is\n{file.read_text(encoding='utf-8')}"
        file.write_text(code, encoding="utf-8")
    elif kind == "sh":
        commands = "\n".join(line for line in code.splitlines() if not line.startswith("pip "))
        done = subprocess.run(
            ["bash", "-ec", commands.replace("dbname=mydb", dsn)], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0 and not done.stderr, f"{commands}\n{done.stderr}"
        compare(done.stdout, place)
        count += 1
    elif kind == "python":
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code.replace("dbname=mydb", dsn), page, "exec"), {})
        compare(output.getvalue(), place)
        count += 1
print(f"{count} commands and snippets print what the page says")
