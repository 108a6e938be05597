"""What `Network` takes and returns: bodies of the REST API (docs/api.md).

Written by python/tests/described.py from /openapi.json; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Circuit(TypedDict):
    """A circuit."""

    input: int  # Sending rack.
    manual: bool  # Whether it was set by hand.
    output: int  # Receiving rack.
    plane: int  # The plane.
    setup_at_ns: int  # The mirrors begin to move.
    state: Literal["promised", "setting-up", "up"]  # Whether it carries data now.
    until_ns: NotRequired[int | None]  # Its end; `null` for an open one.
    up_from_ns: int  # Light.


class Circuits(TypedDict):
    """All circuits."""

    circuits: list[Circuit]  # The circuits: with light, being set up, or promised.
    now_ns: int  # Time of the snapshot.
    revision: int  # Revision of the snapshot that they come from; grows with every change.


FlowView = TypedDict(
    "FlowView",
    {
        "bytes": "int",  # Payload asked.
        "finished_ns": "NotRequired[int | None]",  # When that was all of it.
        "from": "int",  # Sending host.
        "priority": "NotRequired[int]",  # Its strict priority, 0 (first) to 7; it counts where the policy says `network: priority`.
        "received_bytes": "int",  # Payload that its receiver has counted.
        "to": "int",  # Receiving host.
    },
)
"""How far a flow is."""

Pair = TypedDict(
    "Pair",
    {
        "bytes": "int",  # Payload.
        "from": "int",  # Sending rack.
        "to": "int",  # Receiving rack.
    },
)
"""Bytes from a rack to a rack."""


class RackTasks(TypedDict):
    """Reduce tasks of a rack."""

    rack: int  # The rack.
    tasks: int  # Number of tasks.


class Score(TypedDict):
    """What decides between placements: the sum of its parts."""

    cct_ns: int  # How long it then takes.
    others_ns: int  # By how much open coflows end later because of it, in all.
    total_ns: int  # The sum.
    wait_ns: int  # Time until the shuffle begins.


class Candidate(TypedDict):
    """A placement, judged by the circuits and coflows that there are."""

    bound_ns: int  # No schedule on this network is faster with this placement.
    cct_ns: int  # Its estimated completion time, from its beginning.
    finish_ns: int  # When it would be over.
    found_by: Literal["given", "slots", "ports", "circuits", "local", "even", "soonest", "near", "any"]  # How it was found.
    on_time: bool  # Whether it ends before the deadline, where there is one.
    racks: list[RackTasks]  # Reduce tasks by rack; empty where pairs were given.
    score: Score  # What decides, smallest first.
    start_ns: int  # Time at which all reduce tasks have slots and the shuffle begins.
    why: NotRequired[str | None]  # Why the winner was taken instead; left out of the winner.


class ReservedCircuit(TypedDict):
    """A circuit that is reserved."""

    input: int  # Sending rack.
    output: int  # Receiving rack.
    plane: int  # The plane.
    setup_at_ns: int  # The mirrors begin to move; the same as `up_from_ns` for a circuit that goes on.
    until_ns: int  # Its end.
    up_from_ns: int  # Light.


class Excluded(TypedDict):
    """A placement that a bound alone excludes: whatever an estimate said, the winner is better."""

    found_by: Literal["given", "slots", "ports", "circuits", "local", "even", "soonest", "near", "any"]  # How it was found.
    late: bool  # Whether it cannot end before the deadline.
    least_ns: int  # Its score's total is no smaller.
    racks: list[RackTasks]  # Reduce tasks by rack.
    start_ns: int  # Time at which all reduce tasks have slots and the shuffle begins.
    why: str  # Why the winner was taken instead.


PairWay = TypedDict(
    "PairWay",
    {
        "bytes": "int",  # Payload.
        "from": "int",  # Sending rack.
        "to": "int",  # Receiving rack.
        "until_ns": "int",  # When the last byte has been carried, as estimated.
        "way": "Literal['ocs', 'eps']",  # The way: a circuit, or the packet network.
    },
)
"""Bytes from a rack to a rack, and how they go."""


class Held(TypedDict):
    """What was proposed for a coflow, and until when that is held."""

    chosen: Candidate  # The winner.
    circuits: list[ReservedCircuit]  # The circuits that it needs, beside those of coflows that go before it.
    excluded: NotRequired[list[Excluded]]  # Losers that were not, since a bound on their score was enough; smallest first.
    losers: list[Candidate]  # The losers that were estimated, best first.
    pairs: list[PairWay]  # Its bytes between racks.
    tasks: NotRequired[list[int]]  # By reduce task: its rack; left out where all tasks read the same.
    expires_ns: int  # Time until which it is held, unless it is confirmed.
    proposed_ns: int  # When it was proposed.


class Coflow(TypedDict):
    """A coflow's progress."""

    arrival_ns: int  # When it arrived.
    asked_bytes: int  # Their sum.
    bound_ns: int  # No schedule on this network is faster.
    cct_ns: NotRequired[int | None]  # Coflow completion time.
    finished_ns: NotRequired[int | None]  # When its last byte was received.
    # Of a coflow that Heliostat sends: its flows, in their order. Lists leave it out, and it is forgotten some time after the end.
    flows: NotRequired[list[FlowView] | None]
    id: int  # Its number.
    name: str  # What people call it.
    # Bytes between racks that went over circuits (an estimate where coflows share a pair of racks). After the end it may grow for two more
    # control cycles, until the counters of its last bytes have been read.
    over_ocs_bytes: int
    pairs: list[Pair]  # Bytes asked, by rack pair.
    priority: NotRequired[int | None]  # The strict priority that was said of its flows between racks.
    proposal: NotRequired[Held | None]
    received_bytes: int  # Payload received so far.
    state: Literal["proposed", "expired", "active", "finished", "cancelled"]  # Whether it is over.
    why: NotRequired[str | None]  # Why it was cancelled, if it broke.


class Coflows(TypedDict):
    """A list of coflows."""

    coflows: list[Coflow]  # The coflows, by id.
    ended: NotRequired[int]  # How many coflows have ended since the start, in any way.
    more: NotRequired[bool]  # Whether there are others with larger ids, beyond the `limit` that was asked for.
    now_ns: int  # Time of the snapshot.
    revision: int  # Revision of the snapshot that they come from; grows with every change.


Flow = TypedDict(
    "Flow",
    {
        "bytes": "int | str",  # Payload.
        "from": "int | str",  # Sending host.
        # Its own strict priority, 0 (first) to 7; that of its coflow if left out, and within a rack the last.
        "priority": "NotRequired[int | None]",
        "to": "int | str",  # Receiving host.
    },
)
"""Bytes from a host to a host."""

PairBody = TypedDict(
    "PairBody",
    {
        "bytes": "int | str",  # Payload.
        "from": "int | str",  # Sending rack.
        "to": "int | str",  # Receiving rack.
    },
)
"""Bytes from a rack to a rack, as they are posted."""


class RackOutput(TypedDict):
    """What the maps of a rack have made."""

    # With `tasks`: how much of it each reduce task reads, in the tasks' order and `bytes` in all. Either all racks have it or none; then
    # every task reads the same share.
    by_task: NotRequired[list[int | str]]
    bytes: int | str  # Payload.
    rack: int | str  # The rack.


class PlacedTasks(TypedDict):
    """Reduce tasks that a rack has already."""

    rack: int | str  # The rack.
    tasks: int  # Number of tasks.


class SoonFree(TypedDict):
    """Slots that become free together."""

    in_ns: int | str  # Time from now.
    slots: int  # Number of slots.


class RackSlots(TypedDict):
    """Slots of a rack."""

    free: NotRequired[int]  # Slots that are free now; 0 if left out.
    rack: int | str  # The rack.
    soon: NotRequired[list[SoonFree]]  # Slots that will be.


class Place(TypedDict):
    """A shuffle: who sends, and the reduce tasks that receive it, each the same share of every rack's bytes unless `by_task` says more.
    They are placed already (`reduces`), or are to be placed (`tasks` and `slots`).
    """

    allowed: NotRequired[list[int | str] | None]  # With `tasks`: only these racks.
    at_most: NotRequired[int | None]  # With `tasks`: no more in one rack.
    deadline_ns: NotRequired[int | str | None]
    forbidden: NotRequired[list[int | str]]  # With `tasks`: none of these racks.
    hold_ns: NotRequired[int | str | None]
    maps: list[RackOutput]  # Map output by rack: each rack once, above zero.
    ready_ns: NotRequired[int | str]  # Least time from now until the shuffle begins; 0 if left out.
    reduces: NotRequired[list[PlacedTasks] | None]  # Where the reduce tasks are; not together with `tasks`.
    # With `tasks`: free and soon-free slots; racks that are left out have none. If all are left out, the topology's slots are free.
    slots: NotRequired[list[RackSlots] | None]
    tasks: NotRequired[int | None]  # How many reduce tasks are to be placed; not together with `reduces`.


class CoflowBody(TypedDict):
    """A coflow that is declared."""

    # Bytes by flow: between two hosts, also of one rack, above zero, at most 10000. The pairs follow from them.
    flows: NotRequired[list[Flow]]
    name: NotRequired[str | None]  # What people call it; `coflow-<id>` if left out. At most 64 characters.
    pairs: NotRequired[list[PairBody]]  # Bytes by rack pair: each pair once, between two racks, above zero. Left out if there are `flows`.
    place: NotRequired[Place | None]
    # The strict priority of its flows between racks, 0 (first) to 7; 4 if left out. Of a coflow with `place` it is said when that is
    # confirmed.
    priority: NotRequired[int | None]
    # Whether Heliostat sends the bytes itself: the flows, or each pair's bytes evenly from the hosts of its rack. If not, its progress is
    # read from the ToRs' counters.
    send: NotRequired[bool]
    # The tiers of the switches that its `flows` must cross, in their order: `server`, `access`, `aggregation` and `core`; any if left out.
    # Only where the packet network has several switches. Of a coflow with `place` they are said when that is confirmed.
    types: NotRequired[list[Literal["server", "access", "aggregation", "core"]]]
    weight: NotRequired[int | None]  # Its weight for policies that order coflows by weight; 1 if left out.


class Confirmation(TypedDict):
    """How a coflow that was proposed begins."""

    # Its flows, as the tasks were placed; if left out, the bytes between racks are those that were proposed.
    flows: NotRequired[list[Flow]]
    priority: NotRequired[int | None]  # The strict priority of its flows between racks, 0 (first) to 7; 4 if left out.
    send: NotRequired[bool]  # Whether Heliostat sends the bytes itself; as the proposal said if left out.
    # The tiers of the switches that its `flows` must cross, in their order; any if left out.
    types: NotRequired[list[Literal["server", "access", "aggregation", "core"]]]


class Demand(TypedDict):
    """Traffic between racks; each matrix has a row for every sending and a column for every receiving rack."""

    backlog_bytes: list[list[int]]  # Waiting at the senders now.
    demand_bytes: list[list[int]]  # What the last decision saw.
    now_ns: int  # Time of the snapshot.
    over_ocs_bytes: list[list[int]]  # Bytes among these that went over circuits.
    revision: int  # Revision of the snapshot that it comes from; grows with every change.
    sent_bytes: list[list[int]]  # Sent since the start.


class ManualCircuit(TypedDict):
    """A circuit that shall be set by hand."""

    input: int | str  # Sending rack.
    output: int | str  # Receiving rack.
    plane: int | str  # OCS plane.


class FlowLeft(TypedDict):
    """What a flow has still to send."""

    flow: int  # Its place in its coflow, from 0.
    left_bytes: int  # Payload that its receiver has not counted.


class CoflowLeft(TypedDict):
    """What the flows of a coflow have still to send."""

    flows: list[FlowLeft]  # Its flows that have not arrived, by number.
    id: int  # Its number.


class OpenFlows(TypedDict):
    """What the flows on their way have still to send."""

    coflows: list[CoflowLeft]  # The coflows that Heliostat sends and that have not ended, by id.
    now_ns: int  # The time of this answer, in ns since the start of the run.


class Proposal(TypedDict):
    """An answer: the placement, the way of every pair of racks, the circuits that are reserved for it, and what else was considered."""

    chosen: Candidate  # The winner.
    circuits: list[ReservedCircuit]  # The circuits that it needs, beside those of coflows that go before it.
    excluded: NotRequired[list[Excluded]]  # Losers that were not, since a bound on their score was enough; smallest first.
    losers: list[Candidate]  # The losers that were estimated, best first.
    pairs: list[PairWay]  # Its bytes between racks.
    tasks: NotRequired[list[int]]  # By reduce task: its rack; left out where all tasks read the same.


class Quantiles(TypedDict):
    """Distribution of a duration."""

    count: int  # How many were measured.
    max_ns: int  # Largest.
    p50_ns: int  # Median.
    p99_ns: int  # 99th percentile.


class PlaneDark(TypedDict):
    """Dark times of the circuits of one plane."""

    achieved: Quantiles  # Dark time that probes saw.
    asked: Quantiles  # Dark time asked for.
    plane: int  # The plane.


class Failure(TypedDict):
    """Something that failed, kept until it succeeds."""

    attempts: int  # Number of attempts so far.
    retry_at_ns: int  # When it is tried again.
    what: str  # What was tried.
    why: str  # Why it failed.


class Ranges(TypedDict):
    """Durations counted by ranges that never change, as `/metrics` has them."""

    apply: list[int]  # By their time to carry out.
    bounds_ns: list[int]  # The largest duration of each range but the last, which has none.
    cycle: list[int]  # By the three together.
    decide: list[int]  # By their time to decide.
    poll: list[int]  # Cycles by their time to read the fabric; a number a range.


class Tampered(TypedDict):
    """Another process changed the network: what was measured meanwhile may not be what it says."""

    found: int  # How many things were found, each once however long it lasted.
    from_ns: int  # When that was first found.
    until_ns: int  # When it was last found.
    what: str  # What was found first.


class Stats(TypedDict):
    """Counters of the control loop, and what failed and is being retried."""

    apply: Quantiles  # Time to carry out.
    circuits_set: int  # Circuits set up.
    coflows_cancelled: NotRequired[int]  # Coflows that were taken back, or broke, since the start.
    coflows_finished: NotRequired[int]  # Coflows whose last byte was received, since the start.
    coflows_received_bytes: NotRequired[int]  # Payload between racks that both have received.
    cycle: Quantiles  # The three together.
    cycles: int  # Cycles done.
    dark_achieved: Quantiles  # Dark time that probes saw.
    dark_asked: Quantiles  # Dark time asked for.
    dark_by_plane: NotRequired[list[PlaneDark]]  # Both by plane, where planes ask for different dark times; else empty.
    decide: Quantiles  # Time to decide.
    failures: list[Failure]  # What failed and is being retried.
    # Cycles in which the program of the scheduler `external` gave no answer in time, or a wrong one, and the fallback decided.
    fallbacks: int
    first_fallback: NotRequired[str | None]  # Why the fallback decided: the first reason other than a late answer, else the first one.
    late_answers: NotRequired[int]  # Cycles among these in which the answer was only late.
    late_cycles: int  # Cycles whose decision came too late.
    mechanism: str  # `timed`, `netlink` or `sim`.
    missed_cycles: int  # Deadlines skipped.
    name: NotRequired[str]  # What the network is called on its machine: `--name` of `run`, else the topology's name.
    now_ns: int  # Time of the snapshot.
    poll: Quantiles  # Time to read the fabric.
    probes_lost: int  # Probes that never came out.
    probes_ok: int  # Probes that came out where they should.
    probes_wrong: int  # Probes that came out elsewhere.
    ranges: NotRequired[Ranges | None]
    revision: int  # Revision of the snapshot that they come from; grows with every change.
    # Payload between racks that TCP has sent again since the start, of connections that have ended; of traffic that Heliostat sends itself.
    # It is on the wire a second time.
    sent_again_bytes: NotRequired[int | None]
    started_at: NotRequired[str | None]  # The instant from which every `_ns` of an answer or event counts, as ISO 8601 in UTC.
    tampered: NotRequired[Tampered | None]


GraphLink = TypedDict(
    "GraphLink",
    {
        "from": "int",  # The switch at one end.
        "rate_bps": "int",  # Rate, each direction.
        "to": "int",  # The switch at the other.
    },
)
"""A link between two switches, alike in both directions."""


class GraphSwitch(TypedDict):
    """A packet switch."""

    capacity_bps: NotRequired[int | None]  # What it carries at most; `null`: all that comes.
    name: str  # Its name.
    tier: str  # Its place: `server`, `access`, `aggregation` or `core`.


class Graph(TypedDict):
    """Switches, the links between them, and where the racks' uplinks end."""

    links: list[GraphLink]  # The links, by number; two switches may be joined by several.
    racks: list[int]  # By rack: the number of the switch that its uplink leads to.
    switches: list[GraphSwitch]  # The switches, by number.


class Host(TypedDict):
    """A host."""

    id: int  # Its number over the whole network.
    name: str  # Its name, such as `h3-1`.
    nic_bps: int  # Rate of its network interface.
    rack: int  # Its rack.
    slots: int  # Tasks that it runs at once.


class Link(TypedDict):
    """What a kind of link does beside its rate, at both of its ends."""

    buffer_bytes: NotRequired[int | None]  # Bytes that a queue of its ports holds; left out: what its rate asks for.
    delay_ns: NotRequired[int]  # How long a packet is on its way, each direction.
    ecn_bytes: NotRequired[int | None]  # Bytes in a queue from which on packets are marked as having met congestion; left out: never.
    loss_per_million: NotRequired[int]  # How many of a million packets are lost at random, each direction.


class Links(TypedDict):
    """What links do beside their rates, by kind; a kind that does nothing else is left out."""

    access: NotRequired[Link | None]
    aggregation: NotRequired[Link | None]
    core: NotRequired[Link | None]
    nic: NotRequired[Link | None]
    ocs: NotRequired[Link | None]
    server: NotRequired[Link | None]
    uplink: NotRequired[Link | None]


class Plane(TypedDict):
    """An optical plane."""

    all_stop: bool  # Whether all its ports go dark when some change.
    delta_ns: int  # Reconfiguration delay.
    duplex: bool  # Whether circuits come in pairs.
    id: int  # Its number.
    rate_bps: int  # Rate of a circuit.


class Rack(TypedDict):
    """A rack."""

    hosts: int  # Number of hosts.
    id: int  # Its number.
    uplink_bps: int  # Rate of its port to the EPS.


class Topology(TypedDict):
    """The network."""

    graph: NotRequired[Graph | None]
    hosts: list[Host]  # All hosts, rack by rack.
    links: NotRequired[Links | None]
    name: str  # Its name.
    oversubscription_percent: int  # The worst rack's sum of NICs divided by its uplink, in hundredths.
    payload_only: NotRequired[bool]  # Whether rates count payload only; else they count what is on the wire.
    planes: list[Plane]  # The optical planes, by id.
    racks: list[Rack]  # The racks, by id.
