"""Where the runs of a sweep are carried out: engines that start functions on other processes and machines, each as `submit`."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _binary

if TYPE_CHECKING:
    import distributed
    import pyspark
    import pyspark.sql

    Client = Union[Executor, distributed.Client, ModuleType, pyspark.SparkContext, pyspark.sql.SparkSession]
else:
    Client = object

TRIES = 3
"""How often a run is begun whose process is killed, by the kernel for want of memory perhaps."""

SPARK_JOBS = 64
"""Runs that are with Spark at once, at least: each is a job of its own, so that one that fails ends no other."""


class Command(NamedTuple):
    """A run, as a worker gets it. Its directories must have the same names there."""

    directory: str  # in which the caller is: names in the grid may be relative to it
    binary: str | None  # the program, where the caller has named it
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, *arguments: str) -> Command:
        """A command as the caller would run it here and now."""
        return cls(os.getcwd(), os.environ.get("HELIOSTAT"), arguments)


class Ended(NamedTuple):
    """What became of a run."""

    status: int  # of the process; below 0 is a signal
    told: str  # on standard error
    host: str  # the machine


def carry_out(command: Command) -> Ended:
    """Runs a command on the worker that this is called on. Says all that goes wrong by its result."""
    host = socket.gethostname()
    try:
        argv = [command.binary or _binary.find(), *command.arguments]
        for _ in range(TRIES):
            done = subprocess.run(argv, cwd=command.directory, capture_output=True, text=True, check=False)
            if done.returncode >= 0:
                break
        return Ended(done.returncode, done.stderr.strip(), host)
    except (OSError, _binary.Error) as e:
        return Ended(1, str(e), host)


Submit = Callable[[Command], "Future[Ended]"]


@contextmanager
def engine(client: Client) -> Iterator[Submit]:
    """The function that gives a command to a client's workers. The engine tries again what was on a worker that died.

    Raises:
        TypeError: The client is none of those that are known.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    if isinstance(client, Executor):
        yield lambda command: client.submit(carry_out, command)
    elif "distributed" in packages:
        executor = client.get_executor(pure=False)
        yield lambda command: executor.submit(carry_out, command)
    elif isinstance(client, ModuleType) and client.__name__ == "ray":
        with _ray(client) as submit:
            yield submit
    elif "pyspark" in packages:
        with _spark(getattr(client, "sparkContext", client)) as submit:
            yield submit
    else:
        known = "a Dask Client, the module ray, a SparkContext or SparkSession, or an Executor of concurrent.futures"
        raise TypeError(f"client: {known}; not {client!r}")


@contextmanager
def _ray(ray: ModuleType) -> Iterator[Submit]:
    remote = ray.remote(num_cpus=1, max_retries=TRIES)(carry_out)
    refs = []

    def submit(command: Command) -> Future[Ended]:
        refs.append(remote.remote(command))
        future: Future[Ended] = refs[-1].future()
        return future

    try:
        yield submit
    except BaseException:
        for ref in refs:
            ray.cancel(ref)
        raise


@contextmanager
def _spark(context: pyspark.SparkContext) -> Iterator[Submit]:
    def job(command: Command) -> Any:
        # Not first(): Spark starts a new Python for the next run where the last one has not read its input to the end.
        (ended,) = context.parallelize([command], 1).map(carry_out).collect()
        return ended

    pool = ThreadPoolExecutor(max(SPARK_JOBS, 2 * context.defaultParallelism))
    try:
        yield lambda command: pool.submit(job, command)
    finally:
        pool.shutdown(cancel_futures=True)
