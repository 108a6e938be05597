"""The dense assignment solvers of lapx as peers of `benches/peers.rs`: lapx.py SOLVER FILE REPS SECONDS. Times are of the call alone."""

import statistics
import struct
import sys
import time

import lap
import numpy


def main(solver, file, reps, seconds):
    content = open(file, "rb").read()
    (racks,) = struct.unpack("<I", content[:4])
    demand = numpy.frombuffer(content, dtype="<u8", offset=4).reshape(racks, racks)
    cost = demand.max() - demand.astype(numpy.float64)
    call = getattr(lap, solver)
    times, found = [], None
    while len(times) < reps and (len(times) < 3 or sum(times) < seconds * 1e9):
        begun = time.perf_counter_ns()
        found = call(cost)
        times.append(time.perf_counter_ns() - begun)
    # lapjv gives the total, columns by row and rows by column; the others rows and columns.
    columns = found[1] if solver == "lapjv" else found[2]
    weight = sum(int(demand[i, j]) for i, j in enumerate(columns))
    median = int(statistics.median_high(times))
    print(solver, "bipartite", file, racks, len(times), 0, 0, median, min(times), 0, 0, 0, 0, weight, sep="\t")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
