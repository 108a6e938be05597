"""The dense assignment solvers of lapx as peers of `benches/peers.rs`: lapx.py SOLVER FILE REPS SECONDS.

Times are of the call alone, and with the costs that it takes, made of the demand.
"""

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
    call = getattr(lap, solver)
    times, wholes, found = [], [], None
    while len(times) < reps and (len(times) < 3 or sum(wholes) < seconds * 1e9):
        begun = time.perf_counter_ns()
        cost = demand.astype(numpy.float64)
        numpy.subtract(cost.max(), cost, out=cost)
        made = time.perf_counter_ns()
        found = call(cost)
        ended = time.perf_counter_ns()
        times.append(ended - made)
        wholes.append(ended - begun)
    # lapjv gives the total, columns by row and rows by column; the others rows and columns.
    columns = found[1] if solver == "lapjv" else found[2]
    weight = sum(int(demand[i, j]) for i, j in enumerate(columns))
    both = [int(t) for list in (wholes, times) for t in (statistics.median_high(list), min(list))]
    print(solver, "bipartite", file, racks, len(times), *both, 0, 0, 0, 0, weight, sep="\t")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
