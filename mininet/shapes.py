"""The packet network of a topology file as switches and links, by number: the same numbers as Heliostat's.

`heliostat check FILE` checks everything; this reads what it needs to build the network.
"""

from collections import deque


class InvalidGraph(Exception):
    """The graph cannot be built; the message says where and why."""


class Graph:
    """Switches are numbers below `switches`; `cables` are pairs of them; `racks` is the switch of each rack's uplink."""

    def __init__(self, switches, cables, racks):
        self.switches, self.cables, self.racks = switches, cables, racks

    def links_of(self, switch):
        """The cables of a switch and where each leads, by number of the cable."""
        ends = [(c, a, b) for c, (a, b) in enumerate(self.cables) if switch in (a, b)]
        return [(c, b if a == switch else a) for c, a, b in ends]

    def next_cables(self, to):
        """By switch: the cable by which a shortest way to the switch `to` begins; None at its end. Breadth first."""
        first, queue = {to: None}, deque([to])
        links = [self.links_of(s) for s in range(self.switches)]
        while queue:
            at = queue.popleft()
            for cable, far in links[at]:
                if far not in first:
                    first[far] = cable
                    queue.append(far)
        return first


def fat_tree(racks, k):
    half = k // 2
    edge, middle, core = 0, k * half, 2 * k * half
    cables = [(edge + p * half + e, middle + p * half + a) for p in range(k) for e in range(half) for a in range(half)]
    cables += [(middle + p * half + a, core + a * half + c) for p in range(k) for a in range(half) for c in range(half)]
    return Graph(core + half * half, cables, list(range(racks)))


def leaf_spine(racks, spines):
    return Graph(racks + spines, [(r, racks + s) for r in range(racks) for s in range(spines)], list(range(racks)))


def tree(racks, levels):
    below, cables, stands, made, width = [], [], [0] * racks, 0, racks
    for n, level in enumerate(levels):
        join = level["join"]
        own = [made + k for k in range(-(-width // join))]
        made += len(own)
        if n == 0:
            stands = [own[r // join] for r in range(racks)]
        cables += [(s, own[k // join]) for k, s in enumerate(below)]
        below, width = own, len(own)
    cables += [(s, made) for s in below]
    return Graph(made + 1, cables, stands)


def hierarchy(racks, depth, fan, copies=1):
    below, cables, made = [[r] for r in range(fan ** (depth - 1))], [], fan ** (depth - 1)
    for _ in range(1, depth):
        own = []
        for at in range(0, len(below), fan):
            group = list(range(made, made + copies))
            made += copies
            cables += [(child, parent) for children in below[at : at + fan] for child in children for parent in group]
            own.append(group)
        below = own
    return Graph(made, cables, list(range(racks)))


def vl2(racks, da, di):
    tors = da * di // 4
    firsts = [2 * (t % max(di // 2, 1)) for t in range(tors)]
    cables = [(t, tors + first + n) for t, first in enumerate(firsts) for n in range(2)]
    cables += [(tors + a, tors + di + i) for a in range(di) for i in range(da // 2)]
    return Graph(tors + di + da // 2, cables, list(range(racks)))


def bcube(racks, n, k):
    servers, cables = n ** (k + 1), []
    for level in range(k + 1):
        low, first = n**level, servers + level * n**k
        cables += [(s, first + s // (low * n) * low + s % low) for s in range(servers)]
    return Graph(servers + (k + 1) * n**k, cables, list(range(racks)))


def listed(raw):
    numbers = {s["name"]: k for k, s in enumerate(raw["switches"])}
    cables = [(numbers[link["from"]], numbers[link["to"]]) for link in raw.get("links") or []]
    return Graph(len(numbers), cables, [numbers[name] for name in raw["racks"]])


SHAPES = {"fat-tree": fat_tree, "leaf-spine": leaf_spine, "tree": tree, "hierarchy": hierarchy, "vl2": vl2, "bcube": bcube}
NOT_WIRING = ("rate", "switch")


def read_graph(raw, racks):
    """The graph of a topology's `eps.graph`; None if there is none.

    Raises InvalidGraph."""
    if raw is None:
        return None
    try:
        shape = next((name for name in SHAPES if name in raw), None)
        if shape is None:
            graph = listed(raw)
        else:
            graph = SHAPES[shape](racks, **{key: value for key, value in raw[shape].items() if key not in NOT_WIRING})
    except (TypeError, KeyError, AttributeError, ValueError, ArithmeticError) as e:
        raise InvalidGraph("not a graph of switches (`heliostat check` says more): %r" % e) from e
    if len(graph.racks) != racks or any(not 0 <= s < graph.switches for s in [*graph.racks, *(s for c in graph.cables for s in c)]):
        raise InvalidGraph("it is not for %d racks; `heliostat check` says more" % racks)
    reached = graph.next_cables(graph.racks[0])
    lost = [r for r, s in enumerate(graph.racks) if s not in reached]
    if lost:
        raise InvalidGraph("there is no way to rack %d" % lost[0])
    return graph
