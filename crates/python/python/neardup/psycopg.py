"""The type minhash_signature for psycopg 3, in text and in binary.

Columns of the type are loaded as `neardup.Signature`, which can be passed as parameters and written
by COPY.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, Connection, ProgrammingError
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from ._signature import Signature, made

__all__ = ["register", "register_async"]

TYPE = "minhash_signature"


class _TextDumper(Dumper):
    format = Format.TEXT

    def dump(self, obj: Signature) -> Buffer:
        return str(obj).encode()


class _BinaryDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Signature) -> Buffer:
        return bytes(obj)


class _TextLoader(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> Signature:
        return Signature.parse(bytes(data).decode())


class _BinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Signature:
        return made(bytes(data))


def register(connection: Connection[Any]) -> None:
    """Register the type for a connection to a database that has the extension.

    Raises psycopg.ProgrammingError if the type is not found.
    """
    _register(connection, TypeInfo.fetch(connection, TYPE))


async def register_async(connection: AsyncConnection[Any]) -> None:
    """Register the type for an asynchronous connection: see `register`."""
    _register(connection, await TypeInfo.fetch(connection, TYPE))


def _register(context: AdaptContext, info: TypeInfo | None) -> None:
    if info is None:
        raise ProgrammingError(f"type {TYPE} not found: CREATE EXTENSION pg_neardup")
    info.register(context)
    adapters = context.adapters
    assert adapters is not None
    for dumper in (_BinaryDumper, _TextDumper):
        adapters.register_dumper(Signature, type(dumper.__name__, (dumper,), {"oid": info.oid}))
    for loader in (_TextLoader, _BinaryLoader):
        adapters.register_loader(info.oid, loader)
