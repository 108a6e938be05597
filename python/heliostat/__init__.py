"""Heliostat from Python: sweeps on this machine or on many, their results as tables, and deciders of your own.

    import heliostat

    grid = {"topologies": "hybrid-8x2", "policies": ["c-through", "helios"], "workloads": "facebook", "seeds": "1-5"}
    runs = heliostat.sweep(grid, out="results")                     # or sweep(grid, client): Dask, Ray, Spark, any Executor
    coflows = heliostat.read("results", rows="coflows").to_pandas()

`heliostat.serve(decide)` answers Heliostat's questions about circuits or slots: see `heliostat.external`.

All work is done by the program `heliostat`: the one that `$HELIOSTAT` names, that of this installation, or one in the search path.
"""

from ._binary import Error
from ._engines import Client
from ._rows import Rows, Value
from ._sweep import Grid, read, sweep
from .external import Again, Ask, Circuit, Coflow, Configuration, Offer, Plane, ReadyJob, ReadyStage, Shuffled, Start, serve, serve_http

__all__ = [
    "Again",
    "Ask",
    "Circuit",
    "Client",
    "Coflow",
    "Configuration",
    "Error",
    "Grid",
    "Offer",
    "Plane",
    "ReadyJob",
    "ReadyStage",
    "Rows",
    "Shuffled",
    "Start",
    "Value",
    "read",
    "serve",
    "serve_http",
    "sweep",
]
