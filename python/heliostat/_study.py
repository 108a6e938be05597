"""Single runs, and comparisons."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Union, cast, overload

from . import _binary
from ._binary import Error, Option, StrPath
from ._rows import ComparedRow, Rows, Value
from .results import JobsResult, RunResult

Result = Union[RunResult, JobsResult]

FLOATS = ("mean", "half_interval", "min", "max", "difference", "difference_half_interval", "percent", "percent_half_interval")
CELLS: dict[str, Callable[[str], Value]] = {"runs": int, "pairs": int, "unclear": "true".__eq__, **dict.fromkeys(FLOATS, float)}
"""Columns of a comparison that are no words."""


@overload
def simulate(
    topology: StrPath, policy: StrPath, workload: StrPath, *, jobs: None = None, seed: int = 1, **options: Option
) -> RunResult: ...
@overload
def simulate(
    topology: StrPath, policy: StrPath, workload: None = None, *, jobs: StrPath, seed: int = 1, **options: Option
) -> JobsResult: ...
def simulate(
    topology: StrPath,
    policy: StrPath,
    workload: StrPath | None = None,
    *,
    jobs: StrPath | None = None,
    seed: int = 1,
    **options: Option,
) -> Result:
    """Simulates one run, and returns its result: what `--json` writes, with the types of `heliostat.results`.

    Args:
        topology: The network: a file, or the name of a shipped one.
        policy: How circuits are decided: a file, or the name of a shipped one.
        workload: What is sent: a file, the name of a shipped one, or of a mix such as `facebook`.
        jobs: Jobs instead of a workload.
        seed: Decides whatever is drawn.
        options: Other options of `heliostat simulate`, such as `coflows=20`, `scale=10`, `allow_fallback=True`.

    Raises:
        Error: What the program said about its input; or the run failed.
    """
    arguments = _binary.words({"policy": policy, "workload": workload, "jobs": jobs, "seed": seed, **options, "output": "json"})
    result: Result = json.loads(_binary.ask("simulate", os.fspath(topology), *arguments))
    if "policies" in result:
        raise Error("simulate() is for one run; sweep() takes several policies or seeds")
    return result


def compare(
    *results: StrPath | Result,
    by: Sequence[str] = (),
    pool: Sequence[str] = (),
    against: str | None = None,
    label: Sequence[str] = (),
) -> Rows[ComparedRow]:
    """Compares runs with those of the first policy, in pairs of the same workload: what `heliostat compare` prints.

    Args:
        results: Results of `simulate`, files of `--json`, or directories that a sweep has filled.
        by: What tables are made for, such as `["workload", "scale"]`; all in which runs differ if left out. `["none"]` makes one of all.
        pool: What is taken as repetitions, such as `["workload"]`; runs that differ in their seed alone if left out.
        against: The policy that all others are compared with; the first if left out.
        label: Names of the policies, in their order.

    Returns:
        A row for each policy and figure.

    Raises:
        Error: The runs cannot be compared, with the reason.
        TypeError: Rows were given, such as those of `sweep`; what is compared is its directory.
    """
    if any(isinstance(result, Rows) for result in results):
        raise TypeError('these are rows; to compare the runs of a sweep give its directory, such as compare("results")')
    with tempfile.TemporaryDirectory() as folder:
        files: list[str] = []
        # Neighbours are one file, as `--json` writes several runs: rows are named by their policies then, and not by files.
        for in_memory, some in groupby(results, lambda result: isinstance(result, dict)):
            if in_memory:
                file = Path(folder, f"results{len(files)}.json")
                file.write_text(json.dumps(list(some)), encoding="utf-8")
                files.append(str(file))
            else:
                files += [os.fspath(cast("StrPath", path)) for path in some]
        tables = {name: ",".join(keys) for name, keys in (("by", by), ("pool", pool)) if keys}
        options = list(_binary.words({**tables, "against": against, "label": label}))
        header, *lines = _table(files, options)
        if "figure" not in header:  # two runs are compared coflow by coflow, unless tables were asked for
            header, *lines = _table(files, [*options, "--by=none"])
    return Rows({name: CELLS.get(name, str)(text) if text else None for name, text in zip(header, line)} for line in lines)


def _table(files: Sequence[str], options: Sequence[str]) -> list[list[str]]:
    return list(csv.reader(_binary.ask("compare", *files, *options, "--output=csv").splitlines()))
