"""Sweeps: many problems x many solvers, on all CPUs of a machine or on many machines, by Dask.

    from memplan_lab import sweep

    sweep.run(sweep.Settings(suites=["synthetic"], solvers=["auto", "greedy"]), "results")
    table = sweep.read("results")

From the outside to the inside:

    running   settings -> cluster, dataset, dispatcher
    tasks     which tasks there are, and the key of each
    cluster   Dask, local or not: is it there, and does it understand us
    dispatch  client: a few bundles of tasks in flight, one retry  |  over
    remote    worker: their replies, one by one                    |  Dask
              (each task in a process of its own: `memplan_lab.bench.processes`)
    dataset   the folder while it is written: lock, parts, merging
    results   what is in it: schema, reading
"""

from memplan_lab.sweep.results import Result, read, read_metadata, read_rows, schema
from memplan_lab.sweep.running import Effort, run
from memplan_lab.sweep.tasks import Settings

__all__ = ["Effort", "Result", "Settings", "read", "read_metadata", "read_rows", "run", "schema"]
