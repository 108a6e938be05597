"""Finds the program `heliostat`, and runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from typing import Union

StrPath = Union[str, "os.PathLike[str]"]
Word = Union[StrPath, int, float]
Option = Union[Word, None, Sequence[Word]]
"""The value of an option: True is the option alone, False and None leave it out, a sequence gives it several times."""


class Error(Exception):
    """The program does not run, or what it said about a mistake of the caller."""


def find() -> str:
    """The path of the program: `$HELIOSTAT`, that of this installation, or one in the search path.

    Raises:
        Error: There is none.
    """
    if named := os.environ.get("HELIOSTAT"):
        return named
    scripts = (sysconfig.get_path("scripts", scheme) for scheme in (sysconfig.get_default_scheme(), "posix_user"))
    found = next((path for folder in scripts if (path := shutil.which("heliostat", path=folder))), None) or shutil.which("heliostat")
    if found is None:
        raise Error("no program `heliostat`: install this package's wheel, put the program in PATH, or name it by $HELIOSTAT")
    return found


def ask(*arguments: str) -> str:
    """What the program prints.

    Raises:
        Error: It ended with an exit code other than 0; with what it said.
    """
    done = subprocess.run([find(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Error(done.stderr.strip().removeprefix("heliostat: ") or f"heliostat {arguments[0]}: exit status {done.returncode}")
    return done.stdout


def words(options: Mapping[str, Option]) -> Iterator[str]:
    """Options as the program takes them: `allow_fallback=True` is `--allow-fallback`."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            yield option
        elif value is not None and value is not False:
            values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            yield from (f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}" for one in values)
