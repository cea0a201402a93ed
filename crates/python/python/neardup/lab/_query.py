"""A user's query as a part of other queries."""

from __future__ import annotations

from typing import Any, LiteralString

from psycopg import Connection, sql


class UserQuery:
    """A query and the names and types of its columns."""

    def __init__(self, connection: Connection[Any], query: str) -> None:
        self.connection = connection
        self.text = query.strip().removesuffix(";")
        described = self.run("SELECT * FROM {} LIMIT 0", self.source())
        self.names = [column.name for column in described.description or ()]
        self._types = [column.type_code for column in described.description or ()]

    def source(self, *names: str) -> sql.Composable:
        """Return the query in parentheses, as a part of FROM, its columns named."""
        aliases = sql.SQL(" ({})").format(sql.SQL(", ").join(map(sql.Identifier, names))) if names else sql.SQL("")
        return sql.SQL("(\n{}\n) AS q").format(sql.SQL(self.text)) + aliases

    def type_of(self, place: int) -> str:
        """Return the type of a column as SQL."""
        [[name]] = self.run("SELECT format_type({}, NULL)", sql.Literal(self._types[place])).fetchall()
        return str(name)

    def run(self, template: LiteralString, *parts: sql.Composable) -> Any:
        """Run a statement without parameters, so that a percent sign in the query does not begin one."""
        return self.connection.execute(sql.SQL(template).format(*parts))

    def as_text(self, template: LiteralString, *parts: sql.Composable) -> sql.Composable:
        """Return a statement as the text that a function of the extension takes."""
        return sql.Literal(sql.SQL(template).format(*parts).as_string(self.connection))
