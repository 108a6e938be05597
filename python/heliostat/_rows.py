"""A table of results, which becomes one of Arrow, pandas or polars where these are installed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Union, cast, overload

if TYPE_CHECKING:
    import os

    import pandas
    import polars
    import pyarrow

Value = Union[int, float, str, None]
"""A cell. Whole numbers are exact; None is what there is not, such as the completion time of a coflow that did not finish."""


SHOWN = 20
"""Rows of a table in a notebook."""


class _About(TypedDict, total=False):
    """What a run is. Options that the grid varies are columns, too: `rows.columns["scale"]`."""

    id: str
    topology: str
    policy: str
    workload: str  # or jobs
    jobs: str
    seed: int


class RunRow(_About, total=False):
    """A run with its sums, which are None where it has failed. They are columns if any run is done; those of jobs if it is one of jobs."""

    state: Literal["done", "failed", "missing"]
    error: str | None
    end: Literal["finished", "until", "stopped", "stuck"] | None
    coflows_finished: int | None
    coflows_unfinished: int | None
    jobs_finished: int | None
    jobs_unfinished: int | None
    makespan_ns: int | None
    average_jct_ns: int | None
    median_jct_ns: int | None
    p95_jct_ns: int | None
    average_cct_ns: int | None
    median_cct_ns: int | None
    p95_cct_ns: int | None
    jobs_sending: int | None
    slot_time_ns: int | None
    ocs_share: float | None
    circuits_set: int | None
    planned_bytes: int | None
    between_racks_bytes: int | None
    violations: int | None
    fallbacks: int | None
    caveats: str | None  # kinds of reasons why it is not what its name says, with semicolons between


class CoflowRow(_About, total=False):
    """A coflow of a run."""

    coflow: str
    flows: int
    bytes: int
    ocs_share: float
    arrival_ns: int
    cct_ns: int | None
    bound_ns: int
    cct_over_bound: float | None


class JobRow(_About, total=False):
    """A job of a run."""

    job: str
    queue: int
    recurring: str
    tasks: int
    near_host: int
    near_rack: int
    remote: int
    arrival_ns: int
    started_ns: int | None
    finished_ns: int | None
    jct_ns: int | None
    slot_time_ns: int
    shuffle_bytes: int
    shuffled_bytes: int
    read_bytes: int
    between_racks_bytes: int
    shuffle_cct_ns: int | None
    reruns: int


class ComparedRow(TypedDict, total=False):
    """A figure of a policy: its mean, and its difference from the first policy. Half intervals are of 95 %, by Student's t."""

    topology: str  # this and the next one only where tables differ in them; so are options, such as `columns["scale"]`
    workload: str
    policy: str
    figure: str
    unit: str  # s, GB, count, share, ratio
    runs: int
    mean: float
    half_interval: float | None  # None of one run
    min: float | None
    max: float | None
    pairs: int | None  # of the same workload; None of the first policy
    difference: float | None  # the mean over the pairs
    difference_half_interval: float | None
    percent: float | None  # the same in per cent of the first policy's
    percent_half_interval: float | None
    unclear: bool | None  # whether the interval of the difference holds zero
    caveats: str | None


Row = TypeVar("Row", bound=Mapping[str, object])
Cell = TypeVar("Cell")


class _Named(dict[str, Cell], Generic[Cell]):
    """A dictionary that says which names there are."""

    def __missing__(self, name: str) -> Cell:
        raise KeyError(f"{name}; there are: {', '.join(self)}")


class Rows(Sequence[Row]):
    """Rows with named columns. Times (`*_ns`) are in nanoseconds, sizes (`*_bytes` or `bytes`) in bytes, shares between 0 and 1.

    A sequence of dictionaries by itself; `columns` has the same by column. It speaks Arrow's C stream interface, by which
    `pyarrow.table(rows)`, DuckDB and others take it as it is.
    """

    columns: dict[str, list[Value]]
    """The values of each column, from the first row to the last."""

    def __init__(self, rows: Iterable[Mapping[str, Value]]) -> None:
        """From rows that have the same columns."""
        self.columns = _Named()
        for row in rows:
            for name, value in row.items():
                self.columns.setdefault(name, []).append(value)
        for name, values in self.columns.items():
            self.columns[name] = _one_kind(values)

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Rows[Row]:
        """From lines of JSON, one object a row."""
        return cls(json.loads(line) for line in lines)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"row {at} of {len(self)}")
        return cast("Row", _Named((name, values[at]) for name, values in self.columns.items()))

    def to_arrow(self) -> pyarrow.Table:
        """As a table of Arrow; needs `pip install heliostat[arrow]`."""
        import pyarrow

        def array(values: list[Value]) -> pyarrow.Array:
            try:
                return pyarrow.array(values)
            except OverflowError:  # a seed above the largest signed number
                return pyarrow.array(values, pyarrow.uint64())

        return pyarrow.table({name: array(values) for name, values in self.columns.items()})

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas; needs `pip install heliostat[pandas]`.

        Columns of whole numbers in which some are missing have the type `Int64`, which keeps them exact.
        """
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame({name: pandas.array(v) if None in v else v for name, v in self.columns.items()})
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars; needs `pip install heliostat[polars]`."""
        import polars

        return polars.DataFrame(self.columns, strict=False)

    def to_parquet(self, file: str | os.PathLike[str]) -> None:
        """Writes a Parquet file; needs `pip install heliostat[arrow]`. For CSV and JSON lines: `heliostat sweep --collect FILE`."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.to_arrow(), file, compression="zstd")

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<heliostat.Rows: {len(self)} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """As a notebook shows it: the first rows."""

        def line(kind: str, cells: Iterable[Value]) -> str:
            return "<tr>" + "".join(f"<{kind}>{'' if c is None else escape(str(c))}</{kind}>" for c in cells) + "</tr>"

        lines = [line("td", row) for row in zip(*(values[:SHOWN] for values in self.columns.values()))]
        more = f"<p>{len(self)} rows, of which {SHOWN} are shown</p>" if len(self) > SHOWN else ""
        return f"<table>{line('th', self.columns)}{''.join(lines)}</table>{more}"


def _one_kind(values: list[Value]) -> list[Value]:
    """The values, all as text if some are: an option may be a number in one run and a word in another."""
    words = {isinstance(v, str) for v in values if v is not None}
    return [None if v is None else str(v) for v in values] if len(words) == 2 else values
