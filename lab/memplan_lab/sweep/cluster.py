"""Where a sweep runs: on processes of this machine, or on a running cluster of Dask."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from memplan.base.errors import MemplanError, MissingExtraError
from memplan.solvers.limits import count_cpus
from memplan_lab.extras import require
from memplan_lab.sweep import remote

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
_CONNECT = 5.0  # seconds for a scheduler to answer
_FIRST_WORKER = 15.0
_WORKER_MEMORY = 2 << 30  # at least: it is for the problems that wait, not for tasks
# Dask looks at every thread 100 times a second, at its event loops 50 times, and at the memory of
# every worker ten times; that would take time from the solvers.
_LEAN = {
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
# Client, scheduler and workers must have the same versions of these, as their messages are pickled.
_COMMON = ("dask", "distributed", "memplan")


@contextmanager
def connect(scheduler: str, workers: int | None, memory: int) -> Iterator[Client]:
    """Yield a client of a cluster that can run tasks; a local one ends with the context."""
    dask = require("dask", extra="sweep")
    require("distributed", extra="sweep")
    # It warns of large graphs, by which it means problems of many buffers.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        if scheduler == LOCAL:
            with _local(workers, memory) as client:
                yield client
            return
    if workers is not None:
        raise MemplanError(
            f"workers is {workers}, but the workers of {scheduler} are running already; "
            "set their number where you start them"
        )
    with _remote(scheduler) as client:
        yield client


@contextmanager
def _local(workers: int | None, memory: int) -> Iterator[Client]:
    import dask
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_LEAN))
        with _without_ctrl_c():
            # Dask starts a dead worker again, and its rows say so; a log would break the bar.
            cluster = LocalCluster(
                n_workers=count_cpus() if workers is None else workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=max(memory, _WORKER_MEMORY),
                dashboard_address="127.0.0.1:0",  # a free port of its server
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
        yield stack.enter_context(Client(cluster))


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Keep Ctrl-C from threads that start here, and from all processes that they start.

    A terminal sends it to all of them, but only the client must react, and end them. This thread
    gets it when the context ends.
    """
    resource_tracker.ensure_running()  # a later start would let Ctrl-C through in its thread
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _remote(scheduler: str) -> Iterator[Client]:
    from distributed import Client

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other versions raise errors below
            client = Client(scheduler, timeout=_CONNECT)
    except (OSError, ValueError, TypeError) as error:
        raise MemplanError(
            f"the scheduler {scheduler!r} does not answer; start one with `dask scheduler`, and "
            f"give the address that it prints, such as tcp://host:8786 ({_first_line(error)})"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_FIRST_WORKER)
        except TimeoutError:
            raise MemplanError(
                f"the scheduler {scheduler} has no workers; "
                f"start some with `dask worker {scheduler}`"
            ) from None
        check_versions(client.get_versions(check=False, packages=["memplan"]))
        yield client


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def check_versions(found: Mapping[str, Any]) -> None:
    """Refuse a cluster that does not understand this client."""
    here = found["client"]["packages"]
    others: list[tuple[str, Any, Sequence[str]]]
    others = [("the scheduler", found["scheduler"], _COMMON[:2])]
    others += [
        (f"the worker {address}", versions, _COMMON)
        for address, versions in found["workers"].items()
    ]
    for who, versions, packages in others:
        there = versions["packages"]
        for package in packages:
            if there.get(package) is None:
                raise MemplanError(f"{who} has no {package}; install {here[package]} there")
            if there[package] != here[package]:
                raise MemplanError(
                    f"{who} has {package} {there[package]}, and this is {here[package]}; "
                    "install the same version on all machines"
                )
        ours, theirs = (each["python"].split(".")[:2] for each in (here, there))
        if ours != theirs:
            raise MemplanError(
                f"{who} has Python {'.'.join(theirs)}, and this is {'.'.join(ours)}; "
                "use the same version on all machines"
            )


def describe_workers(client: Client, libraries: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what every worker is, by address, with its warm process made."""
    try:
        found: dict[str, dict[str, Any]] = client.run(remote.describe, list(libraries))
    except Exception as error:  # the worker's, of any kind, which may look like one of the client's
        raise MemplanError(f"a worker cannot run tasks: {_first_line(error)}") from None
    for address, facts in found.items():
        for name in facts.pop("missing"):
            raise MissingExtraError(
                f"the worker {address} lacks {name}, which a solver needs: "
                f"pip install '{libraries[name]}'"
            )
    return found
