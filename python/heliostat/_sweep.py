"""Sweeps, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any, Literal, TypedDict, Union, overload

from . import _binary
from ._binary import StrPath
from ._engines import TRIES, Client, Command, Ended, Submit, engine
from ._rows import CoflowRow, JobRow, Rows, RunRow

PATIENCE_S = 60.0
"""How long results may take until they show here: shared file systems look again for what was not there only now and then."""

TELL_EVERY_S = 10.0

PROCESSES = 2000
"""The most processes that a client's workers start. Each reads the whole grid, so the runs of larger grids share them."""

Many = Union[str, int, float, bool, "list[str]", "list[int]", "list[float]", "list[bool]"]


class Grid(TypedDict, total=False):
    """Every combination of what its lists hold is a run. A file's name is relative to the working directory."""

    topologies: Many
    """Topology files, or names of shipped ones."""
    policies: Many
    """Policy files, or names of shipped ones; all are held against the first."""
    workloads: Many
    """Workload files, names of shipped ones, or mixes such as `facebook`."""
    jobs: Many
    """Jobs, in the place of `workloads`."""
    seeds: Many
    """Numbers, or ranges such as `"1-10"`; 1 if left out."""
    options: Mapping[str, Many]
    """Options of `heliostat simulate` without their dashes."""


def sweep(grid: StrPath | Grid, client: Client | None = None, out: StrPath = "results", *, threads: int | None = None) -> Rows[RunRow]:
    """Carries out the runs of a grid whose results are not there yet, and returns a row for every run.

    A run is a process and writes its result to a file in `out`. So a sweep that was stopped or killed goes on when it is called again.

    Args:
        grid: A file of YAML, or a dictionary, which is written to `out/grid.yaml`.
        client: Who carries out the runs: a Dask `Client`, the module `ray`, a `SparkContext` or `SparkSession`, or any
            `concurrent.futures.Executor`. Its workers need this package or the program `heliostat`, and the same directories under the
            same names. None is this machine, without Python in between.
        out: The directory of the results.
        threads: Runs at once without a client; all cores if None. A client decides for itself.

    Returns:
        The rows of `read(out)`. A run that failed is a row with the state `failed` and its error; it is tried again in the next call. So is
        one whose process or worker was killed, after some tries.

    Raises:
        Error: The grid makes no sense, with the file, line and column of each mistake; or there is no program `heliostat`.
        TypeError: The client is none of these.
    """
    out = Path(out).absolute()
    arguments = ("sweep", str(_file(grid, out)), "--out", str(out))
    runs: Rows[RunRow] = Rows.of_lines(_binary.ask(*arguments, "--list").splitlines())
    left = [run["id"] for run in runs if run["state"] != "done"]
    out.mkdir(parents=True, exist_ok=True)
    if client is None:
        why = dict.fromkeys(left, _here([*arguments, *(["--threads", str(threads)] if threads else [])]))
    else:
        why = _spread(client, arguments, out, left)
    _note(out, why)
    return _collected(arguments, "runs")


@overload
def read(out: StrPath, rows: Literal["runs"] = "runs") -> Rows[RunRow]: ...
@overload
def read(out: StrPath, rows: Literal["coflows"]) -> Rows[CoflowRow]: ...
@overload
def read(out: StrPath, rows: Literal["jobs"]) -> Rows[JobRow]: ...
def read(out: StrPath, rows: Literal["runs", "coflows", "jobs"] = "runs") -> Rows[Any]:
    """The results in a directory that a sweep has filled, from here or by `heliostat sweep`.

    Args:
        out: The directory.
        rows: What a row is: a run with its sums, its `state` (`done`, `failed`, `missing`) and `error`; or a coflow or a job, of all runs
            whose results are there.

    Returns:
        The rows. Those of runs are in the order of the grid that was swept last.

    Raises:
        Error: There was no sweep, or `rows` are jobs and the grid has none.
    """
    return _collected(("sweep", "--out", str(out)), rows)


def _collected(arguments: Iterable[str], rows: str) -> Rows[Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.jsonl")
        _binary.ask(*arguments, "--collect", str(file), "--rows", rows)
        with file.open(encoding="utf-8") as lines:
            return Rows.of_lines(lines)


def _file(grid: StrPath | Grid, out: Path) -> Path:
    """The file of a grid; YAML takes JSON."""
    if not isinstance(grid, Mapping):
        return Path(grid).absolute()
    file = out / "grid.yaml"
    text = json.dumps(grid, indent=1) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        new = out / "grid.yaml.new"
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    return file


def _here(arguments: list[str]) -> str:
    """Runs the sweep in one process of this machine, again if it is killed; what to say of runs that it left undone."""
    for _ in range(TRIES):
        status = subprocess.run([_binary.find(), *arguments], stdout=subprocess.DEVNULL, check=False).returncode
        if status >= 0:
            return f"heliostat sweep ended with exit status {status}; its standard error says why"
    return _killed(status)


def _killed(status: int) -> str:
    return f"its process was killed by signal {-status}, {TRIES} times"


def _spread(client: Client, arguments: Iterable[str], out: Path, left: list[str]) -> dict[str, str]:
    """Has a client's workers carry out the runs that are left; what to say of each if it left nothing."""
    some = 1 + len(left) // PROCESSES
    with engine(client) as submit:
        for run in left:
            (out / f"{run}.error").unlink(missing_ok=True)
        futures: dict[Future[Ended], list[str]] = {}
        try:
            for k in range(0, len(left), some):
                only = [word for run in left[k : k + some] for word in ("--only", run)]
                futures[_given(submit, Command.of(*arguments, "--threads", "1", *only))] = left[k : k + some]
            ended = _followed(futures, len(left))
        finally:
            for future in futures:
                future.cancel()
    _await_results(out, [run for run, e in ended.items() if e.status == 0])
    return {run: _why(e) for run, e in ended.items()}


def _given(submit: Submit, runs: Command) -> Future[Ended]:
    """Runs given to an engine; one that takes no more, such as a broken pool of processes, fails these runs only."""
    try:
        return submit(runs)
    except Exception as e:
        refused: Future[Ended] = Future()
        refused.set_exception(e)
        return refused


def _followed(futures: Mapping[Future[Ended], list[str]], of: int) -> dict[str, Ended]:
    """What became of each run. Tells now and then how far all are."""
    ended: dict[str, Ended] = {}
    began = told = time.monotonic()
    for future in as_completed(futures):
        ended.update(dict.fromkeys(futures[future], _outcome(future)))
        now = time.monotonic()
        if now - told >= TELL_EVERY_S:
            told = now
            to_go = (now - began) / len(ended) * (of - len(ended))
            print(f"{len(ended)}/{of} runs, {to_go:.0f} s to go", file=sys.stderr, flush=True)
    print(f"{of} runs in {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return ended


def _outcome(future: Future[Ended]) -> Ended:
    """What became of a run. An engine raises what it likes when it gives a run up."""
    try:
        return future.result()
    except Exception as e:
        return Ended(1, f"{type(e).__name__}: {str(e)[:1000]}", "")


def _why(ended: Ended) -> str:
    if ended.status < 0:
        return f"on {ended.host}: {_killed(ended.status)}"
    if ended.status == 0:
        return f"ended well on {ended.host}, but left no result here: do the workers see this directory under the same name?"
    return f"on {ended.host}: {ended.told}" if ended.host else ended.told


def _await_results(out: Path, runs: list[str]) -> None:
    until = time.monotonic() + PATIENCE_S
    wanted = {f"{run}.json" for run in runs}
    while not wanted <= set(os.listdir(out)) and time.monotonic() < until:
        time.sleep(0.2)


def _note(out: Path, why: Mapping[str, str]) -> None:
    """Writes why a run left nothing, for those that did so, as the program writes why a run failed."""
    there = set(os.listdir(out))
    for run, text in why.items():
        if f"{run}.json" not in there and f"{run}.error" not in there:
            (out / f"{run}.error").write_text(text + "\n", encoding="utf-8")
