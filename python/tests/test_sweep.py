"""Sweeps by threads and processes of this machine, and what goes wrong in them."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from conftest import results

import heliostat
from heliostat import _sweep
from heliostat._engines import Command, Ended, carry_out


def test_an_executor_gives_what_the_program_gives(grid: Path, tmp_path: Path, want: dict[str, bytes]) -> None:
    with ThreadPoolExecutor(2) as executor:
        rows = heliostat.sweep(grid, executor, out=tmp_path)
    assert (len(rows), set(rows.columns["state"])) == (24, {"done"})
    assert results(tmp_path) == want
    assert list(rows) == list(heliostat.read(tmp_path))
    assert all(isinstance(row["makespan_ns"], int) for row in rows)


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    given = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given += 1
        return super().submit(fn, *args, **kwargs)


def test_runs_of_large_grids_share_processes(grid: Path, tmp_path: Path, want: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sweep, "PROCESSES", 7)
    with Counting(2) as executor:
        heliostat.sweep(grid, executor, out=tmp_path)
    assert executor.given == 6
    assert results(tmp_path) == want


def filled(out: Path, want: dict[str, bytes]) -> None:
    """A directory as a sweep of the grid leaves it."""
    for name, text in want.items():
        (out / name).write_bytes(text)


def test_what_is_there_is_not_run_again(grid: Path, tmp_path: Path, want: dict[str, bytes]) -> None:
    out = tmp_path
    filled(out, want)
    before = {file: file.stat().st_mtime_ns for file in out.glob("*.json")}
    next(iter(before)).unlink()
    with ThreadPoolExecutor(2) as executor:
        rows = heliostat.sweep(grid, executor, out=out)
    after = {file: file.stat().st_mtime_ns for file in out.glob("*.json")}
    assert sum(before[file] != after[file] for file in before) == 1
    assert set(rows.columns["state"]) == {"done"}


def test_a_smaller_grid_is_what_is_read(grid: Path, tmp_path: Path, want: dict[str, bytes]) -> None:
    """The runs of the grid that was swept last, also when all of them were there."""
    filled(tmp_path, want)
    assert len(heliostat.sweep(grid, out=tmp_path)) == 24
    smaller: heliostat.Grid = {
        "topologies": "hybrid-8x2",
        "policies": ["c-through", "helios"],
        "workloads": "facebook",
        "options": {"coflows": 30, "scale": [10]},
    }
    with ThreadPoolExecutor(1) as executor:
        rows = heliostat.sweep(smaller, executor, out=tmp_path)
    assert [row["policy"] for row in rows] == ["c-through", "helios"]
    coflows = heliostat.read(tmp_path, rows="coflows")
    assert len(coflows) == 60
    assert [row["coflow"] for row in coflows][:2] == ["1", "2"], coflows[:2]


def test_files_beside_the_caller_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("name: mine\ninterval: 100ms\ndemand: backlog\nscheduler: edmonds\nelephants: {admit: all}\n")
    grid: heliostat.Grid = {"topologies": "hybrid-8x2", "policies": "mine.yaml", "workloads": "shuffle-8", "seeds": [1, 2]}
    with ThreadPoolExecutor(1) as executor:
        rows = heliostat.sweep(grid, executor)
    assert [(row["policy"], row["state"]) for row in rows] == [("mine.yaml", "done")] * 2
    assert Path("results", "runs.jsonl").exists()


def failing(tmp_path: Path) -> Path:
    """Two runs, one of which fails: `network: sunflow` knows no faults."""
    file = tmp_path / "failing.yaml"
    file.write_text("topologies: hybrid-8x2\npolicies: [c-through, sunflow]\nworkloads: shuffle-8\noptions: {fault: r1.uplink=50%@1s}\n")
    return file


@pytest.mark.parametrize("client", [None, ThreadPoolExecutor(1)])
def test_a_run_that_fails_is_a_row(tmp_path: Path, client: Executor | None) -> None:
    for _ in range(2):
        done, failed = heliostat.sweep(failing(tmp_path), client, out=tmp_path / "out")
        assert (done["state"], done["error"], failed["state"]) == ("done", None, "failed")
        assert "knows no faults" in str(failed["error"])
        assert failed["makespan_ns"] is None


def test_a_program_that_does_not_decide_fails_its_run(tmp_path: Path) -> None:
    program = """sh, -c, "read hello; echo '{\\"protocol\\":1}'; exit 3\""""
    policy = f"name: crash\ninterval: 100ms\ndemand: backlog\nscheduler: external\nexternal: {{command: [{program}]}}\n"
    (tmp_path / "crash.yaml").write_text(policy)
    grid: heliostat.Grid = {"topologies": "hybrid-4x2", "policies": ["c-through", str(tmp_path / "crash.yaml")], "workloads": "shuffle-4"}
    done, failed = heliostat.sweep(grid, out=tmp_path / "out")
    assert (done["state"], done["fallbacks"], done["caveats"], failed["state"]) == ("done", 0, None, "failed")
    assert "has ended (exit status: 3)" in str(failed["error"])
    grid["options"] = {"allow-fallback": True}
    _, allowed = heliostat.sweep(grid, out=tmp_path / "out")
    assert (allowed["state"], allowed["caveats"]) == ("done", "fallback")
    assert isinstance(allowed["fallbacks"], int)
    assert allowed["fallbacks"] > 0


def test_mistakes_in_a_grid_have_their_places(tmp_path: Path) -> None:
    with pytest.raises(heliostat.Error, match=r"policies\[1\].*did you mean `helios`"):
        heliostat.sweep({"topologies": "hybrid-8x2", "policies": ["eps-only", "helio"], "workloads": "facebook"}, out=tmp_path / "out")
    with pytest.raises(heliostat.Error, match=r"runs\.jsonl"):
        heliostat.read(tmp_path)


def test_other_clients_are_refused(grid: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a Dask Client, the module ray"):
        heliostat.sweep(grid, os, out=tmp_path / "out")


def test_no_program(grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELIOSTAT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda *_, **__: str(tmp_path))
    with pytest.raises(heliostat.Error, match=r"\$HELIOSTAT"):
        heliostat.sweep(grid, out=tmp_path / "out")


def killed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the program one whose runs are killed. It counts them in the file that is returned."""
    count, program = tmp_path / "count", tmp_path / "heliostat"
    real = os.environ.get("HELIOSTAT", "heliostat")
    program.write_text(f'#!/bin/sh\ncase "$*" in *--list*|*--collect*) exec {real} "$@";; esac\necho >> {count}\nkill -9 $$\n')
    program.chmod(0o755)
    monkeypatch.setenv("HELIOSTAT", str(program))
    return count


def test_runs_that_are_killed_are_tried_again_and_then_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = killed_runs(tmp_path, monkeypatch)
    with ThreadPoolExecutor(2) as executor:
        heliostat.sweep(failing(tmp_path), executor, out=tmp_path / "out")
    errors = [file.read_text() for file in (tmp_path / "out").glob("*.error")]
    assert len(count.read_text().splitlines()) == 2 * 3
    assert all("killed by signal 9, 3 times" in error for error in errors)
    assert len(errors) == 2


class Elsewhere(Executor):
    """Workers of another file system: all goes well, and nothing arrives."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(Ended(0, "", "elsewhere"))
        return future


def test_results_that_do_not_arrive_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sweep, "PATIENCE_S", 0)
    rows = heliostat.sweep(failing(tmp_path), Elsewhere(), out=tmp_path / "out")
    assert set(rows.columns["state"]) == {"failed"}
    assert "ended well on elsewhere, but left no result here" in str(rows[0]["error"])


def test_a_worker_without_the_directory_says_so(tmp_path: Path) -> None:
    ended = carry_out(Command(str(tmp_path / "none"), None, ("list",)))
    assert ended.status == 1
    assert str(tmp_path / "none") in ended.told


def test_a_broken_pool_costs_rows_and_no_exception(tmp_path: Path) -> None:
    """A pool of processes ends with the first of them that is killed. The next call runs what is missing."""
    grid: heliostat.Grid = {"topologies": "hybrid-8x2", "policies": ["c-through", "helios"], "workloads": "shuffle-8"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
        rows = heliostat.sweep(grid, pool, out=tmp_path)
    assert rows.columns["state"] == ["failed", "failed"]
    assert all("BrokenProcessPool" in str(row["error"]) for row in rows)
    assert heliostat.sweep(grid, out=tmp_path).columns["state"] == ["done", "done"]
