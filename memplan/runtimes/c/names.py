"""Turns any name into C and C++: identifiers, string literals, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["escape_comment", "is_free", "make_identifiers", "make_prefix", "quote_string"]

_LONGEST = 100  # of an identifier, without its prefix and number
_LONGEST_PREFIX = 40
# C99 promises 4095 bytes of a string literal, and a character has at most four.
_LONGEST_TEXT = 1000

# These bytes are safe in a literal. A "?" is not, as it could begin a trigraph.
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\?')
# Other characters than these are unsafe in a comment. A "*" beside a "/" could end it or begin
# another one, and at an end of the text what stands beside it is not known.
_UNSAFE_IN_COMMENT = re.compile(r"[^A-Za-z0-9 _.,:;/()\[\]<>=+@#%*-]|^\*|(?<=/)\*|\*(?=/|\Z)")

# The words of C11 and C++20 that no variable may have as its name.
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())
# Types of <stdint.h>, which its user includes.
_TYPE = re.compile(r"u?int((_least|_fast)?(8|16|32|64)|max|ptr)_t")


def is_free(name: str) -> bool:
    """Return whether a variable of C and C++ may have this name."""
    is_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None
    return is_name and name not in _KEYWORDS and _TYPE.fullmatch(name) is None


def make_prefix(name: str) -> str:
    """Return the prefix of all names of a header, in upper case and without a digit in front."""
    word = _make_word(name)[:_LONGEST_PREFIX].rstrip("_").upper()
    if not word:
        return "PLAN"
    return f"PLAN_{word}" if word[0].isdigit() else word


def make_identifiers(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return for every name the end of an identifier; all results are distinct.

    They consist of ASCII letters and digits with single underscores between these. They need a
    prefix, as without one they may begin with a digit or be a reserved word. None is one of
    `reserved`, which the header uses itself behind the same prefix.
    """
    reserved = set(reserved)
    names = list(names)
    words = [_make_word(name)[:_LONGEST].rstrip("_") or "unnamed" for name in names]
    # A name that is already an identifier is kept, even if others before it would become the same.
    taken = {word for word, name in zip(words, names, strict=True) if word == name} | reserved
    next_number: dict[str, int] = {}
    found = []
    for word, name in zip(words, names, strict=True):
        unique = word
        if word != name or word in reserved:
            number = next_number.get(word, 1)
            while unique in taken:
                number += 1
                unique = f"{word}_{number}"
            next_number[word] = number
            taken.add(unique)
        found.append(unique)
    return found


def quote_string(text: str) -> str:
    """Return the text as a literal in UTF-8, cut after a thousand characters."""
    data = text[:_LONGEST_TEXT].encode("utf-8", "surrogatepass")
    # An octal escape has at most three digits; a hexadecimal one would include digits after it.
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in data) + '"'


def escape_comment(text: str) -> str:
    """Return the text as it may stand within a comment, on one line."""
    return _UNSAFE_IN_COMMENT.sub("_", text[:_LONGEST_TEXT])


def _make_word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
