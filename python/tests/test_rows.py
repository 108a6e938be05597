"""Tables of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliostat import Rows, Value

LINES = [
    '{"id": "12e4", "seed": 9223372036854775809, "scale": 10, "cct_ns": 9007199254740993, "share": 0.5, "error": null}',
    '{"id": "0012", "seed": 1, "scale": "all", "cct_ns": null, "share": 1, "error": null}',
]


def test_rows_are_a_sequence() -> None:
    rows: Rows[dict[str, Value]] = Rows.of_lines(LINES)
    assert (len(rows), rows[1]["id"], rows[-1], [r["seed"] for r in rows]) == (2, "0012", rows[1], [9223372036854775809, 1])
    assert rows[:1] == [rows[0]]
    assert rows.columns["scale"] == ["10", "all"], "words and numbers in one column are words"
    assert repr(rows) == "<heliostat.Rows: 2 rows of id, seed, scale, cct_ns, share, error>"
    with pytest.raises(IndexError):
        rows[2]
    assert (len(Rows([])), list(Rows([]))) == (0, [])


def test_names_that_are_none_are_told_with_those_that_are() -> None:
    rows: Rows[dict[str, Value]] = Rows.of_lines(LINES)
    for named in (rows.columns, rows[0]):
        with pytest.raises(KeyError, match="sed; there are: id, seed, scale, cct_ns, share, error"):
            named["sed"]


def test_notebooks_show_the_first_rows() -> None:
    html = Rows([{"name": "<b>", "share": None}, {"name": "c", "share": 0.5}])._repr_html_()
    assert html == "<table><tr><th>name</th><th>share</th></tr><tr><td>&lt;b&gt;</td><td></td></tr><tr><td>c</td><td>0.5</td></tr></table>"
    many = Rows([{"k": k} for k in range(30)])._repr_html_()
    assert many.endswith("<td>19</td></tr></table><p>30 rows, of which 20 are shown</p>")


def test_numbers_are_exact_in_arrow_and_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: Rows[dict[str, Value]] = Rows.of_lines(LINES)
    table = rows.to_arrow()
    assert table.to_pylist() == list(rows)
    assert table.schema.field("cct_ns").type == pyarrow.int64()
    assert pyarrow.table(rows) == table, "the C stream interface"
    rows.to_parquet(tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == list(rows)


def test_numbers_are_exact_in_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = Rows.of_lines(LINES).to_pandas()
    assert frame["cct_ns"][0] == 9007199254740993
    assert frame["cct_ns"][1] is pandas.NA
    assert frame["seed"].tolist() == [9223372036854775809, 1]


def test_numbers_are_exact_in_polars() -> None:
    pytest.importorskip("polars")
    rows: Rows[dict[str, Value]] = Rows.of_lines(LINES)
    assert rows.to_polars().rows(named=True) == [json.loads(json.dumps(row)) for row in rows]
