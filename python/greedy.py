"""Heaviest pair first: the scheduler `greedy` once more, as a program. Both decide the same."""

import heliostat


def matching(demand, plane):
    """The heaviest pair whose ports are free, and so on; on a duplex plane both directions at once."""
    weights = {}
    for (i, j), size in demand.items():
        if size and plane.is_usable(i, j):
            pair = (min(i, j), max(i, j)) if plane.duplex else (i, j)
            weights[pair] = weights.get(pair, 0) + size
    inputs, outputs, pairs = set(), set(), []
    for i, j in sorted(weights, key=lambda p: (-weights[p], p)):
        if i in inputs or j in outputs:
            continue
        both = [(i, j), (j, i)] if plane.duplex else [(i, j)]
        pairs += both
        inputs.update(p[0] for p in both)
        outputs.update(p[1] for p in both)
    return pairs


def decide(ask):
    left, planes = {(i, j): size for i, j, size in ask.demand}, []
    for plane in ask.planes:
        pairs = matching(left, plane)
        planes.append(pairs)
        # The next plane takes what this one leaves: a circuit that stays has no dark time.
        unchanged = sorted(pairs) == sorted(plane.current)
        for pair in pairs:
            stays = unchanged or (pair in plane.current and not plane.all_stop)
            left[pair] = max(left.get(pair, 0) - plane.bytes_in(ask.interval_ns - (0 if stays else plane.delta_ns)), 0)
    return planes


heliostat.serve(decide)
