"""Plans a model of which some pairs of buffers should not share addresses."""

from __future__ import annotations

import os

from memplan.machine.apart.penalties import Penalties, take_penalties
from memplan.problem import Problem
from memplan.programs.sources import Loaded
from memplan.solvers.apart import Apart, search
from memplan.solvers.planning import load_model

__all__ = ["plan_apart"]


def plan_apart(
    model: str | os.PathLike[str] | Loaded | Problem,
    penalties: Penalties,
    *,
    capacity: int | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    seed: int = 0,
) -> Apart:
    """Plan buffers of which some pairs should not share addresses, at the least cost.

    Two buffers that share addresses tie the operators that use them to an order. Where these could
    run side by side, that costs time, which only the caller knows.

    Parameters
    ----------
    model
        A file that `memplan.load` reads, its result, or a problem.
    penalties
        By pair of ids: what it costs if the two share an address, a whole number from 0 on; or a
        file in CSV with the columns `first,second,cost`. Other pairs may share for nothing.
    capacity
        In bytes; by default that of the file or the problem. One of them is needed, as without a
        limit nothing has to be shared.
    timeout
        Seconds. A clock makes the answer depend on the machine.
    nodes
        Work of all searches, about a microsecond each; without a timeout, by default 20 million.
    seed
        Seed of the search's random choices.

    Returns
    -------
    Apart
        The cheapest plan that is found, with a proved bound; of the cheapest ones, the one with the
        smallest peak.

    Raises
    ------
    MemplanError
        One sentence: for penalties that make no sense, a capacity that is missing; and as
        `memplan.load`.

    Examples
    --------
    >>> import memplan as mp
    >>> from memplan.machine.apart import plan_apart
    >>> buffers = [mp.Buffer("a", 0, 1, 8), mp.Buffer("b", 1, 2, 8), mp.Buffer("c", 2, 3, 8)]
    >>> prices = {("a", "b"): 5, ("b", "c"): 5, ("a", "c"): 2}
    >>> found = plan_apart(mp.Problem(buffers), prices, capacity=16)
    >>> found.cost, found.met, str(found.status)
    (2, (('a', 'c'),), 'optimal')
    """
    problem = load_model(model, capacity).problem
    return search(problem, take_penalties(problem, penalties), timeout, nodes, seed)
