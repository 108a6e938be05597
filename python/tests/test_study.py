"""Single runs and comparisons give what the program writes and prints."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from described import results

import heliostat
from heliostat import _binary

OPTIONS: dict[str, Any] = {"coflows": 20, "scale": 10}


def program(*arguments: str) -> Any:
    """What the program prints as JSON."""
    return json.loads(_binary.ask(*arguments, "--output=json"))


def test_a_run_is_what_the_program_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--policy=helios", "--workload=facebook", "--seed=3", "--coflows=20", "--scale=10", "--fold", "--fault=r1.uplink=50%@1s"]
    want = program("simulate", "hybrid-8x2", *arguments, "--fault=r2.uplink=50%@1s")
    faults = [f"r{rack}.uplink=50%@1s" for rack in (1, 2)]
    assert (
        heliostat.simulate("hybrid-8x2", "helios", "facebook", seed=3, fold=True, until=None, alone=False, fault=faults, **OPTIONS) == want
    )
    assert list(tmp_path.iterdir()) == []
    assert heliostat.simulate("hybrid-4x2", "co-decided", jobs="jobs-8")["summary"]["average_jct_ns"] > 0
    assert heliostat.simulate("hybrid-4x2", "helios", Path("shuffle-4"))["end"] == "finished"


def test_mistakes_are_told_in_the_programs_words() -> None:
    with pytest.raises(heliostat.Error, match="nosuch: no such file, and no policy of that name"):
        heliostat.simulate("hybrid-8x2", "nosuch", "facebook")
    with pytest.raises(heliostat.Error, match="--no-such"):
        heliostat.simulate("hybrid-8x2", "helios", "facebook", no_such=1)
    with pytest.raises(heliostat.Error, match=r"one run; sweep\(\)"):
        heliostat.simulate("hybrid-8x2", "helios", "facebook", repeat=2, **OPTIONS)
    with pytest.raises(heliostat.Error, match="no run of the same coflows"):
        heliostat.compare(
            *(heliostat.simulate("hybrid-8x2", policy, "shuffle-8", scale=10 * k) for k, policy in ((1, "helios"), (2, "wait")))
        )


def test_types_of_results_are_those_of_the_schema() -> None:
    pytest.importorskip("ruff")
    assert Path(str(heliostat.results.__file__)).read_text(encoding="utf-8") == results()


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies on three seeds and two loads."""
    out = tmp_path_factory.mktemp("swept")
    options: dict[str, Any] = {"coflows": 20, "scale": [10, 100]}
    grid: heliostat.Grid = {"topologies": "hybrid-8x2", "policies": ["helios", "c-through"], "workloads": "facebook", "seeds": "1-3"}
    assert set(heliostat.sweep({**grid, "options": options}, out=out).columns["state"]) == {"done"}
    return out


def flat(tables: Any) -> list[dict[str, Any]]:
    """The rows that the program's JSON of a comparison comes to."""
    rows: list[dict[str, Any]] = []
    for table in tables if isinstance(tables, list) else [tables]:
        for policy in table["policies"]:
            for figure in policy["figures"]:
                against = figure["against_first"] or {}
                difference, percent = (against.get(key) or {} for key in ("difference", "percent"))
                of_pairs = {"pairs": against.get("pairs"), "difference": difference.get("mean"), "percent": percent.get("mean")}
                halves = {"difference_half_interval": difference.get("half"), "percent_half_interval": percent.get("half")}
                mean = {"figure": figure["name"], "unit": figure["unit"], "mean": figure["mean"], "half_interval": figure["half"]}
                ends = {"min": min(figure["values"]), "max": max(figure["values"]), "runs": policy["runs"], "policy": policy["policy"]}
                rows.append({**dict(table.get("of", [])), **mean, **ends, **of_pairs, **halves, "unclear": against.get("unclear")})
    return rows


@pytest.mark.parametrize("options", [{}, {"pool": ["scale"]}, {"against": "c-through"}, {"label": ["a", "b"], "by": ["scale"]}])
def test_a_comparison_has_the_programs_numbers(swept: Path, options: dict[str, Any]) -> None:
    words = [
        f"--{key}={value}" if isinstance(value, str) else f"--{key}={','.join(value)}" for key, value in options.items() if key != "label"
    ]
    words += [f"--label={label}" for label in options.get("label", [])]
    want = flat(program("compare", str(swept), *words))
    got = heliostat.compare(swept, **options)
    assert [{k: v for k, v in row.items() if k != "caveats"} for row in got if row["unit"] != "ratio"] == want
    assert any(row["unit"] == "ratio" for row in got)
    assert {row["percent"] is None for row in got} == {True, False}
    printed = _binary.ask("compare", str(swept), *words)
    for row in got:
        if row["figure"] == "average CCT" and row["percent"] is not None:
            assert f"{row['percent']:+.1f} ± {row['percent_half_interval']:.1f} %" in printed, printed


def test_intervals_are_those_of_student() -> None:
    """Worked out by hand: 95 % of t with two degrees of freedom is 4.303."""
    pairs = [[heliostat.simulate("hybrid-8x2", p, "facebook", seed=s, **OPTIONS) for s in (1, 2, 3)] for p in ("helios", "c-through")]
    rows = heliostat.compare(*pairs[0], *pairs[1])
    (row,) = (row for row in rows if row["figure"] == "average CCT" and row["policy"] == "c-through")
    first, second = ([run["summary"]["average_cct_ns"] for run in runs] for runs in pairs)
    percent = [100 * (b - a) / a for a, b in zip(first, second)]
    assert row["pairs"] == 3
    assert row["percent"] == pytest.approx(statistics.mean(percent))
    assert row["percent_half_interval"] == pytest.approx(4.303 * statistics.stdev(percent) / math.sqrt(3), rel=1e-5)


def test_two_results_are_compared_by_figures_too(tmp_path: Path) -> None:
    two = [heliostat.simulate("hybrid-4x2", policy, "shuffle-4") for policy in ("helios", "c-through")]
    rows = heliostat.compare(*two)
    assert {(row["policy"], row["runs"]) for row in rows} == {("helios", 1), ("c-through", 1)}
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, result in zip(files, two):
        file.write_text(json.dumps(result))
    assert list(heliostat.compare(*files)) == list(heliostat.compare(files[0], two[1])) == list(rows)


def test_rows_are_refused_with_what_to_give(swept: Path) -> None:
    with pytest.raises(TypeError, match="give its directory"):
        heliostat.compare(heliostat.read(swept))  # type: ignore[arg-type]


def test_rows_are_as_their_types_say(swept: Path, tmp_path: Path) -> None:
    heliostat.sweep({"topologies": "hybrid-8x2", "policies": "co-decided", "jobs": "jobs-8"}, out=tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    for kind, some in (
        (heliostat.RunRow, [heliostat.read(swept), heliostat.read(tmp_path)]),
        (heliostat.CoflowRow, [heliostat.read(swept, "coflows"), heliostat.read(tmp_path, "coflows")]),
        (heliostat.JobRow, [heliostat.read(tmp_path, "jobs")]),
        (heliostat.ComparedRow, [heliostat.compare(swept, by=["topology", "workload"], pool=["scale"])]),
    ):
        hints = get_type_hints(kind)
        columns = {name: values for rows in some for name, values in rows.columns.items()}
        load = {"workload", "jobs"}  # one of them
        assert set(columns) - {"coflows", "scale"} | load == set(hints) | load, kind
        for name, values in columns.items():
            allowed = get_args(hints.get(name, str)) or (hints.get(name, str),)
            allowed = tuple(word for kind in allowed for word in get_args(kind) or (kind,))
            odd = [v for v in values if v not in allowed and type(v) not in allowed and name in hints]
            assert not odd, f"{kind.__name__}.{name}: {odd[:3]}, not {allowed}"
        assert all(f"`{name}`" in page for name in hints), [name for name in hints if f"`{name}`" not in page]


def test_the_version_is_the_programs() -> None:
    # Cargo writes 1.0.0-rc.1 where Python writes 1.0.0rc1.
    assert _binary.ask("--version").replace("-rc.", "rc") == f"heliostat {heliostat.__version__}\n"
