"""Sweeps on engines with worker processes of their own: what they give, and what is left when processes are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import engines
import pytest
from conftest import results, until

import heliostat

HEAVY = [pytest.param(name, marks=pytest.mark.heavy) for name in ("ray", "spark")]


@pytest.fixture(scope="module", params=["dask", *HEAVY])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Engine]:
    name = request.param
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}.get(name, name))
    if name == "spark" and not shutil.which("java"):
        pytest.skip("no Java: apt-get install openjdk-17-jre-headless")
    with engines.ENGINES[name](tmp_path_factory.mktemp(name)) as up:
        yield up


def worker_with_a_run(out: Path) -> int:
    """The process of an engine that has a run in its hands, 0 if there is none; Spark's executor is the parent of such a process."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"--only" in words and str(out).encode() in words:
                return executor_of(parent(int(folder.name)))
        except OSError:
            continue
    return 0


def kill_a_worker(out: Path) -> None:
    """Kills one that has a run, when some others have ended."""
    until("some runs have ended", lambda: len(results(out)) >= 2)
    until("a worker has a run", lambda: worker_with_a_run(out))
    os.kill(worker_with_a_run(out), signal.SIGKILL)
    (out / "killed").touch()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def executor_of(worker: int) -> int:
    daemon = parent(worker)
    is_spark = b"pyspark.daemon" in Path(f"/proc/{daemon}/cmdline").read_bytes()
    return parent(daemon) if is_spark else worker


def test_it_gives_what_the_program_gives(engine: engines.Engine, grid: Path, tmp_path: Path, want: dict[str, bytes]) -> None:
    rows = heliostat.sweep(grid, engine.client, out=tmp_path / "out")
    assert results(tmp_path / "out") == want
    assert set(rows.columns["state"]) == {"done"}


def test_a_run_that_fails_is_a_row(engine: engines.Engine, tmp_path: Path) -> None:
    grid: heliostat.Grid = {
        "topologies": "hybrid-8x2",
        "policies": ["c-through", "sunflow"],
        "workloads": "shuffle-8",
        "options": {"fault": "r1.uplink=50%@1s"},
    }
    rows = heliostat.sweep(grid, engine.client, out=tmp_path / "out")
    assert rows.columns["state"] == ["done", "failed"]
    assert "knows no faults" in str(rows[1]["error"])


def test_a_worker_that_is_killed_costs_no_run(engine: engines.Engine, grid: Path, tmp_path: Path, want: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    killer = threading.Thread(target=kill_a_worker, args=[out])
    killer.start()
    rows = heliostat.sweep(grid, engine.client, out=out)
    killer.join()
    assert (out / "killed").exists()
    assert set(rows.columns["state"]) == {"done"}, rows.columns["error"]
    assert results(out) == want


def test_a_coordinator_that_is_killed_goes_on(engine: engines.Engine, grid: Path, tmp_path: Path, want: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    name = {"distributed": "dask", "pyspark": "spark"}.get(type(engine.client).__module__.partition(".")[0], "ray")
    command = [sys.executable, engines.__file__, name, engine.address, str(grid), str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as coordinator:
        try:
            until("some runs have ended", lambda: len(results(out)) >= 2 or coordinator.poll() is not None)
        finally:
            coordinator.kill()
    before = {file: file.stat().st_mtime_ns for file in out.glob("*.json")}
    assert len(before) < 24, "it was killed too late to tell anything"
    heliostat.sweep(grid, engine.client, out=out)
    assert results(out) == want
    assert all(file.stat().st_mtime_ns == written for file, written in before.items()), "what was there is not run again"
