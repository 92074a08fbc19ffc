"""Writes the plans of several paths as one header for C99 and C++17, with a function that chooses.

NET_ALL_OFFSET_conv, NET_PATH1_OFFSET_conv     for each plan the constants of `header`, with
                                               its assertions
net_choose(branches)                           the plan to go on with, if these are known
net_offsets[plan][NET_TENSOR_conv]             where a tensor lies
"""

from __future__ import annotations

from collections.abc import Iterator

from memplan.base.errors import MemplanError
from memplan.programs.sources import Loaded
from memplan.runtimes.c import names as c
from memplan.runtimes.c.arrays import align_array
from memplan.runtimes.c.header import guard_linkage, list_tensors, write_header
from memplan.scenarios.paths import PathPlans

__all__ = ["write_paths_header"]

_LONGEST = 28  # of the prefix, so that what is added to it is not cut off


def write_paths_header(found: PathPlans, *, name: str | None = None) -> str:
    """Return the plans of all paths, and of the whole program, as the text of a header.

    The name is the prefix of all names in the header, as for `write_header`. A plan that is not a
    legal plan of its problem is refused, and so are programs in which no tensor is planned.
    """
    graph = found.fallback.loaded.graph
    title = name or (graph.name if graph is not None else "") or "plan"
    return "\n".join(_lines(found, title)) + "\n"


def _lines(found: PathPlans, title: str) -> Iterator[str]:
    upper = c.make_prefix(title)[:_LONGEST].rstrip("_")
    plans = [found.fallback, *(each.planned for each in found.paths)]
    prefixes = [f"{upper}_ALL", *(f"{upper}_PATH{at + 1}" for at in range(len(found.paths)))]
    for planned, prefix in zip(plans, prefixes, strict=True):
        yield write_header(planned.loaded, planned.plan, name=prefix)
    constants = [
        _name_tensors(planned.loaded, prefix)
        for planned, prefix in zip(plans, prefixes, strict=True)
    ]
    if not constants[0]:
        raise MemplanError("no tensor of the program is planned, so that a header would be empty")
    choices = c.make_identifiers((choice.name for choice in found.choices), ["COUNT"])
    titles = ["every path", *(each.name for each in found.paths)]
    lower = upper.lower()
    alignment = align_array(a for each in plans for a in each.problem.alignment)
    yield from (f"#ifndef {upper}_PATHS_H_", f"#define {upper}_PATHS_H_", "")
    yield f"/* {found.peak} bytes are enough for every run. A run begins with the plan that"
    yield f" * {lower}_choose returns for what is known, and asks again whenever a condition"
    yield " * becomes known; nothing moves then. Branches that are not known are -1. */"
    yield f"#define {upper}_ARENA_SIZE {found.peak}u"
    yield f"#define {upper}_ARENA_ALIGNMENT {alignment}u"
    yield f"#define {upper}_PLAN_COUNT {len(plans)}"
    yield f"#define {upper}_NOWHERE UINT64_MAX /* the offset of what a path does not need */"
    yield ""
    for number, what in enumerate(titles):
        plan = "ALL" if number == 0 else f"PATH{number}"
        yield f"#define {upper}_PLAN_{plan} {number} /* {c.escape_comment(what)} */"
    yield ""
    yield f"#define {upper}_CHOICE_COUNT {len(choices)}"
    # Joined by what is in no identifier, so that they are distinct: "a" and "b_c", "a_b" and "c".
    pairs = zip(choices, found.choices, strict=True)
    joined = [f"{own}.{branch}" for own, choice in pairs for branch in choice.branches]
    ends = iter(c.make_identifiers(joined))
    for number, (choice, own) in enumerate(zip(found.choices, choices, strict=True)):
        yield f"#define {upper}_CHOICE_{own} {number} /* {c.escape_comment(choice.name)} */"
        for at in range(len(choice.branches)):
            yield f"#define {upper}_BRANCH_{next(ends)} {at}"
    yield ""
    names = list(constants[0])
    yield f"#define {upper}_TENSOR_COUNT {len(names)}"
    for number, own in enumerate(c.make_identifiers(names, ["COUNT"])):
        yield f"#define {upper}_TENSOR_{own} {number}"
    yield ""
    offsets = f"{lower}_offsets[{upper}_PLAN_COUNT][{upper}_TENSOR_COUNT]"
    sizes = f"{lower}_arena_sizes[{upper}_PLAN_COUNT]"
    branches = f"{lower}_branches[{upper}_PLAN_COUNT][{upper}_CHOICE_COUNT]"
    yield from guard_linkage(
        f"extern const uint64_t {offsets};",
        f"extern const uint64_t {sizes}; /* the bytes of each plan */",
        f"extern const int16_t {branches};",
    )
    yield ""
    yield f"static inline int {lower}_choose(const int* branches) {{"
    yield f"  for (int plan = 1; plan < {upper}_PLAN_COUNT; ++plan) {{"
    yield "    int fits = 1;"
    yield f"    for (int choice = 0; choice < {upper}_CHOICE_COUNT; ++choice) {{"
    yield f"      const int asked = {lower}_branches[plan][choice];"
    yield "      fits = fits && (asked < 0 || asked == branches[choice]);"
    yield "    }"
    yield "    if (fits) return plan;"
    yield "  }"
    yield f"  return {upper}_PLAN_ALL;"
    yield "}"
    yield ""
    yield f"#endif /* {upper}_PATHS_H_ */"
    yield ""
    yield f"#if defined({upper}_DEFINE_PATHS) && !defined({upper}_PATHS_DEFINED_)"
    yield f"#define {upper}_PATHS_DEFINED_"
    rows = [
        ", ".join(f"{own[name]}" if name in own else f"{upper}_NOWHERE" for name in names)
        for own in constants
    ]
    asked = [[-1] * len(choices)]
    for path in found.paths:
        asked.append(
            [
                each.branches.index(path.choices[each.name]) if each.name in path.choices else -1
                for each in found.choices
            ]
        )
    yield from guard_linkage(
        f"const uint64_t {offsets} = {{",
        *(f"    {{{row}}}," for row in rows),
        "};",
        f"const uint64_t {sizes} = {{",
        *(f"    {prefix}_ARENA_SIZE," for prefix in prefixes),
        "};",
        f"const int16_t {branches} = {{",
        *(f"    {{{', '.join(map(str, row))}}}," for row in asked),
        "};",
    )
    yield "#endif"


def _name_tensors(loaded: Loaded, prefix: str) -> dict[str, str]:
    """Return by name of a tensor the constant for its offset, in the header of one plan."""
    names = [entry.name for entry in list_tensors(loaded)]
    ends = c.make_identifiers(names)
    return {name: f"{prefix}_OFFSET_{end}" for name, end in zip(names, ends, strict=True)}
