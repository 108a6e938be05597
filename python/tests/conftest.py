"""What the tests share. They need the program: `$HELIOSTAT` or one in the search path. Lines PASS, FAIL and SKIP are for scripts/test."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import heliostat


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="with what needs heavy packages: Ray, Spark, Kubernetes")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "heavy: only with --all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--all"):
        items[:] = [item for item in items if not item.get_closest_marker("heavy")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for word, kind in (("PASS", "passed"), ("FAIL", "failed"), ("FAIL", "error"), ("SKIP", "skipped")):
        for report in terminalreporter.getreports(kind):
            why = f": {report.longrepr[2].removeprefix('Skipped: ')}" if word == "SKIP" else ""
            terminalreporter.write_line(f"{word} {report.nodeid.rpartition('/')[2]}{why}")


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 runs of a fraction of a second each, in a file."""
    file = tmp_path_factory.mktemp("grid") / "grid.yaml"
    file.write_text(
        "topologies: hybrid-8x2\npolicies: [c-through, helios, eps-only]\nworkloads: facebook\nseeds: 1-4\n"
        "options: {coflows: 30, scale: [10, 100]}\n"
    )
    return file


@pytest.fixture(scope="session")
def want(grid: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the grid gives by the program alone."""
    out = tmp_path_factory.mktemp("want")
    heliostat.sweep(grid, out=out, threads=2)
    return results(out)


def results(out: Path) -> dict[str, bytes]:
    """The results in a directory, by name."""
    return {file.name: file.read_bytes() for file in out.glob("*.json")}


def until(what: str, happens: Callable[[], object], within_s: float = 120) -> None:
    """Waits for a condition."""
    end = time.monotonic() + within_s
    while not happens():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        time.sleep(0.02)
