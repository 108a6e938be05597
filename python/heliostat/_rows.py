"""A table of results, which becomes one of Arrow, pandas or polars where these are installed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

if TYPE_CHECKING:
    import os

    import pandas
    import polars
    import pyarrow

Value = Union[int, float, str, None]
"""A cell. Whole numbers are exact; None is what there is not, such as the completion time of a coflow that did not finish."""


class Rows(Sequence[dict[str, Value]]):
    """Rows with named columns. Times (`*_ns`) are in nanoseconds, sizes (`*_bytes` or `bytes`) in bytes, shares between 0 and 1.

    A sequence of dictionaries by itself; `columns` has the same by column. It speaks Arrow's C stream interface, by which
    `pyarrow.table(rows)`, DuckDB and others take it as it is.
    """

    columns: dict[str, list[Value]]
    """The values of each column, from the first row to the last."""

    def __init__(self, rows: Iterable[dict[str, Value]]) -> None:
        """From rows that have the same columns."""
        self.columns = {}
        for row in rows:
            for name, value in row.items():
                self.columns.setdefault(name, []).append(value)
        for name, values in self.columns.items():
            self.columns[name] = _one_kind(values)

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Rows:
        """From lines of JSON, one object a row."""
        return cls(json.loads(line) for line in lines)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    @overload
    def __getitem__(self, at: int) -> dict[str, Value]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Value]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Value] | list[dict[str, Value]]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"row {at} of {len(self)}")
        return {name: values[at] for name, values in self.columns.items()}

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


def _one_kind(values: list[Value]) -> list[Value]:
    """The values, all as text if some are: an option may be a number in one run and a word in another."""
    words = {isinstance(v, str) for v in values if v is not None}
    return [None if v is None else str(v) for v in values] if len(words) == 2 else values
