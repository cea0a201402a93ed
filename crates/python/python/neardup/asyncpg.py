"""The type minhash_signature for asyncpg.

Columns of the type are loaded as `neardup.Signature`, which can be passed as parameters and written
by COPY.
"""

from __future__ import annotations

from typing import Any

from ._signature import Signature, made

__all__ = ["register"]


async def register(connection: Any, schema: str = "public") -> None:
    """Register the type for a connection; ``schema`` is the schema of the extension.

    Raises ValueError if the type is not found. For all connections of a pool, pass this function as its
    ``init``.
    """
    await connection.set_type_codec(
        "minhash_signature", schema=schema, encoder=_encode, decoder=made, format="binary"
    )


def _encode(value: bytes | str) -> bytes:
    return Signature.parse(value) if isinstance(value, str) else value
