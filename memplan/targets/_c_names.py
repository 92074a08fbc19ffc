"""Turns any name into C and C++: identifiers, string literals, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["comment", "identifiers", "prefix", "string_literal"]

_LONGEST = 100  # of an identifier, without its prefix and number
_LONGEST_PREFIX = 40
# C99 promises 4095 bytes of a string literal, and a character has at most four.
_LONGEST_TEXT = 1000

# What is safe in a literal. A "?" could begin a trigraph.
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\?')
# What is safe in a comment: with no "*" it cannot end there, nor seem to begin another one.
_UNSAFE_IN_COMMENT = re.compile(r"[^A-Za-z0-9 _.,:;/()\[\]<>=+@#%-]")


def prefix(name: str) -> str:
    """Return what every name of a header begins with: upper case, and never with a digit."""
    word = _word(name)[:_LONGEST_PREFIX].rstrip("_").upper()
    if not word:
        return "PLAN"
    return f"PLAN_{word}" if word[0].isdigit() else word


def identifiers(names: Iterable[str]) -> list[str]:
    """Return for every name the end of an identifier, all of them distinct.

    They hold letters and digits of ASCII and single underscores between these. A prefix has to
    come first: by themselves they may begin with a digit, or be a reserved word.
    """
    names = list(names)
    words = [_word(name)[:_LONGEST].rstrip("_") or "unnamed" for name in names]
    # A name that is an identifier already is kept, at whatever place in the list.
    taken = {word for word, name in zip(words, names, strict=True) if word == name}
    next_number: dict[str, int] = {}
    found = []
    for word, name in zip(words, names, strict=True):
        unique = word
        if word != name:
            number = next_number.get(word, 1)
            while unique in taken:
                number += 1
                unique = f"{word}_{number}"
            next_number[word] = number
            taken.add(unique)
        found.append(unique)
    return found


def string_literal(text: str) -> str:
    """Return a literal whose bytes are the text in UTF-8, cut after a thousand characters."""
    data = text[:_LONGEST_TEXT].encode("utf-8", "surrogatepass")
    # Octal, of three digits: unlike a hexadecimal escape it ends before whatever comes next.
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in data) + '"'


def comment(text: str) -> str:
    """Return the text as it may stand within a comment, on one line."""
    return _UNSAFE_IN_COMMENT.sub("_", text[:_LONGEST_TEXT])


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
