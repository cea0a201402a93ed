"""The values of columns of type minhash_signature."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from . import _native


class Signature(bytes):
    """A MinHash signature: the bytes that the server stores, sends and receives.

    Equal signatures are equal bytes. ``str`` gives the text form that the server prints.

    Raises ValueError for bytes that are not a signature, as the server does for bytes from a client.
    """

    __slots__ = ()

    def __new__(cls, data: bytes) -> Self:
        signature = super().__new__(cls, data)
        _native.check(signature)
        return signature

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the signature in a text form, ``minhash:1:word:3:case:128x32:...``.

        Raises ValueError for a text that is not a signature.
        """
        return bytes.__new__(cls, _native.parse(text))

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the signature, as ``minhash_describe`` does."""
        return _native.describe(self)

    def __str__(self) -> str:
        return _native.text(self)

    def __repr__(self) -> str:
        return f"<Signature {self}>"


made: Callable[[bytes], Signature] = partial(bytes.__new__, Signature)
"""Make a signature from bytes of the native part, without checking them again."""
