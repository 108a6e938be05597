"""Heliostat from Python: runs in virtual time and live ones, sweeps on this machine or on many, comparisons, and deciders of your own.

    import heliostat

    grid = {"topologies": "hybrid-8x2", "policies": ["c-through", "helios"], "workloads": "facebook", "seeds": "1-5"}
    runs = heliostat.sweep(grid, out="results")                     # or sweep(grid, client): Dask, Ray, Spark, any Executor
    coflows = heliostat.read("results", rows="coflows").to_pandas()
    table = heliostat.compare("results")                            # paired differences, with their intervals
    result = heliostat.simulate("hybrid-8x2", "helios", "shuffle-8")

    with heliostat.run("hybrid-4x2") as network:                    # on the kernel of this machine
        coflow = network.post({"send": True, "pairs": [{"from": "r0", "to": "r2", "bytes": "50MB"}]})
        print(network.wait(coflow["id"])["cct_ns"])

`heliostat.serve(decide)` answers Heliostat's questions about circuits or slots: see `heliostat.external`. Types of results are in
`heliostat.results`, those of the REST API in `heliostat.api`.

All work is done by the program `heliostat`: the one that `$HELIOSTAT` names, that of this installation, or one in the search path.
"""

from . import api, results
from ._binary import Error
from ._engines import Client
from ._network import Network, Refused, run
from ._rows import CoflowRow, ComparedRow, JobRow, Rows, RunRow, Value
from ._study import compare, simulate
from ._sweep import Grid, read, sweep
from .external import (
    Again,
    Ask,
    Circuit,
    Coflow,
    Configuration,
    Offer,
    Pair,
    Plane,
    ReadyJob,
    ReadyStage,
    Shuffled,
    Start,
    serve,
    serve_http,
)

__version__ = "1.0.0rc1"

__all__ = [
    "Again",
    "Ask",
    "Circuit",
    "Client",
    "Coflow",
    "CoflowRow",
    "ComparedRow",
    "Configuration",
    "Error",
    "Grid",
    "JobRow",
    "Network",
    "Offer",
    "Pair",
    "Plane",
    "ReadyJob",
    "ReadyStage",
    "Refused",
    "Rows",
    "RunRow",
    "Shuffled",
    "Start",
    "Value",
    "api",
    "compare",
    "read",
    "results",
    "run",
    "serve",
    "serve_http",
    "simulate",
    "sweep",
]
