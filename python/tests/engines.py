"""Engines on this machine, each with two worker processes. Run as a program, it is a coordinator that can be killed:

python engines.py dask|ray|spark ADDRESS GRID OUT
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import heliostat


class Engine(NamedTuple):
    """One that is up."""

    client: Any
    address: str  # for other coordinators


@contextmanager
def dask(folder: Path) -> Iterator[Engine]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(folder)) as cluster,
        Client(cluster) as client,
    ):
        yield Engine(client, cluster.scheduler_address)


@contextmanager
def ray(folder: Path) -> Iterator[Engine]:
    import ray

    # Names of sockets must be short: not in the test's folder.
    context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    try:
        yield Engine(ray, context.address_info["address"])
    finally:
        ray.shutdown()


@contextmanager
def spark(folder: Path) -> Iterator[Engine]:
    """A standalone master with two workers, and an application on them."""
    import pyspark

    home = Path(pyspark.__file__).parent
    small = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_JAVA_OPTS": small, "SPARK_LOCAL_IP": "127.0.0.1"}
    address = f"127.0.0.1:{free_port()}"
    host, _, port = address.partition(":")

    def start(kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", "--host", host, "--webui-port", "0", *arguments]
        log = (folder / f"{kind}.log").open("ab")
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    started = [start("master.Master", "--port", port)]
    try:
        wait_for(address)
        worker = ("--cores", "2", "--memory", "1200m", "--work-dir", str(folder), f"spark://{address}")
        started += [start("worker.Worker", *worker) for _ in range(2)]
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        context = spark_context(f"spark://{address}")
        try:
            yield Engine(context, f"spark://{address}")
        finally:
            context.stop()
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def spark_context(master: str) -> Any:
    import pyspark

    conf = pyspark.SparkConf().setMaster(master).setAppName("sweep").set("spark.ui.enabled", "false")
    # Half of the cores: two coordinators may be there at once.
    conf.set("spark.cores.max", "2").set("spark.executor.cores", "1").set("spark.executor.memory", "512m").set("spark.log.level", "OFF")
    return pyspark.SparkContext(conf=conf)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def wait_for(address: str, within_s: float = 60) -> None:
    host, _, port = address.partition(":")
    end = time.monotonic() + within_s
    while True:
        try:
            return socket.create_connection((host, int(port)), 1).close()
        except OSError:
            assert time.monotonic() < end, f"nothing listens at {address}"
            time.sleep(0.1)


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Engine]]] = {"dask": dask, "ray": ray, "spark": spark}


def connect(engine: str, address: str) -> Any:
    """A client of an engine that is up."""
    if engine == "dask":
        from distributed import Client

        return Client(address)
    if engine == "ray":
        import ray

        ray.init(address=address, log_to_driver=False)
        return ray
    return spark_context(address)


if __name__ == "__main__":
    engine, address, grid, out = sys.argv[1:]
    heliostat.sweep(grid, connect(engine, address), out=out)
