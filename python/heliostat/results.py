"""What `simulate` returns, and what `--json` of run, simulate and schedule writes (docs/result-file.md).

Written by python/tests/described.py from `heliostat check --schema result`; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Caveat(TypedDict):
    """One reason why a run is not what its name says."""

    count: int  # How many things it is about: cycles, coflows, faults, records.
    # Which kind of reason.
    kind: Literal[
        "fallback",
        "late-answers",
        "stuck",
        "interrupted",
        "until",
        "unfinished",
        "forced",
        "tampered",
        "busy-machine",
        "missed-cycles",
        "misdelivered",
        "faults",
        "faulty-ports",
        "folded",
        "left-out",
        "jobs-as-coflows",
    ]
    what: str  # What, in a few words.
    why: NotRequired[str | None]  # The first cause, where one is known.


class CoflowRecord(TypedDict):
    """The final account of one coflow: a line of every result table, live and simulated."""

    arrival_ns: int  # When it arrived.
    between_racks_bytes: int  # Payload bytes between racks.
    bound_ns: int  # No schedule on this network is faster.
    bytes: int  # Payload bytes, all of them.
    cct_ns: int | None  # Coflow completion time.
    finished_ns: int | None  # When its last byte was received; `None` if the run ended first.
    flows: int  # Number of flows.
    id: int  # Its number.
    longest_flow_bytes: NotRequired[int | None]  # Payload bytes of its longest flow; absent in results of older versions.
    lost: NotRequired[str | None]  # Why it can never finish, if that is so.
    name: str  # Its name.
    ocs_share: float  # Share of the bytes between racks that went over circuits, 0..=1.


class Busy(TypedDict):
    """What a machine did during a live run: shares of the processors' time, 0..=1."""

    others_share: float  # What other programs took.
    stolen_share: float  # What the host of a virtual machine took away.
    # Share of the run in which something waited for a processor (`/proc/pressure/cpu`); absent where the kernel does not say.
    waited_for_cpu_share: NotRequired[float | None]
    waited_for_io_share: NotRequired[float | None]  # The same for disks.
    waited_for_memory_share: NotRequired[float | None]  # The same for memory.


class Machine(TypedDict):
    """The machine of a run."""

    cores: NotRequired[int | None]  # Number of processors that may be used.
    events_per_second: NotRequired[float | None]  # Events of a simulation in a second of that.
    kernel: NotRequired[str | None]  # Release of the kernel.
    load: NotRequired[Busy | None]  # What the machine did during a live run.
    processor: NotRequired[str | None]  # Model of the processors.
    revision: NotRequired[str | None]  # Git revision of the sources from which this binary was built, where the build knew it.
    seconds: NotRequired[float | None]  # Wall-clock time of the run, without reading files and writing results.


class Origin(TypedDict):
    """Where a result comes from: whether two results are of the same inputs can be told from it."""

    # Name of the machine. Simulations have it, and `started_at`, only if asked for: all else is the same on every machine.
    host: NotRequired[str | None]
    # Options of the command that the result depends on, such as `scale`, as they were given; not the seed.
    options: NotRequired[dict[str, str]]
    policy_sha256: NotRequired[str | None]  # The same of the policy's.
    # What ends of flows left was shared again at multiples of this only; absent of live runs, and where it was shared at once.
    resolution_ns: NotRequired[int | None]
    seed: NotRequired[int | None]  # What was drawn, was drawn from this; absent of live runs.
    settings: NotRequired[dict[str, str]]  # The policy: all its keys with their values, also those that its file leaves out.
    started_at: NotRequired[str | None]  # When the run began, in UTC (RFC 3339).
    # SHA-256 of the topology's file in hexadecimal; absent if it was read from no file, or from a pipe.
    topology_sha256: NotRequired[str | None]
    version: str  # Heliostat's version.
    workload_sha256: NotRequired[str | None]  # The same of the file of the workload or the jobs; absent of mixes, which the seed decides.


class Quantiles(TypedDict):
    """Distribution of a duration, with three significant digits."""

    count: int  # How many were measured.
    max_ns: int  # Largest, exact.
    p50_ns: int  # Median.
    p99_ns: int  # 99th percentile.


class PlaneDark(TypedDict):
    """Dark times of the circuits of one plane."""

    achieved: Quantiles  # Dark time that the probes saw.
    asked: Quantiles  # Dark time asked for, of circuits that were probed.
    plane: int  # The plane's number.


class Stats(TypedDict):
    """Counters of the control loop."""

    apply: Quantiles  # Time to carry out.
    circuits_set: int  # Circuits set up.
    cycle: Quantiles  # The three together.
    cycles: int  # Cycles done.
    dark_achieved: Quantiles  # Dark time that the probes saw.
    dark_asked: Quantiles  # Dark time asked for, of circuits that were probed.
    dark_by_plane: NotRequired[list[PlaneDark]]  # Both by plane, where planes ask for different dark times; else empty.
    decide: Quantiles  # Time to decide.
    # Cycles in which the program of the scheduler `external` gave no answer in time, or a wrong one, and the fallback decided.
    fallbacks: NotRequired[int]
    first_fallback: NotRequired[str | None]  # Why the fallback decided: the first reason other than a late answer, else the first one.
    late_answers: NotRequired[int]  # Cycles among these in which the answer was only late.
    late_cycles: int  # Cycles whose decision came too late for its instant; each is counted once and none is done twice.
    missed_cycles: int  # Deadlines skipped altogether because a cycle outlasted them.
    poll: Quantiles  # Time to read the fabric.
    probes_lost: int  # Probes that never came out.
    probes_ok: int  # Probes that came out where they should.
    probes_wrong: int  # Probes that came out elsewhere.


class Summary(TypedDict):
    """The sums of a run."""

    asked_bytes: int  # Payload bytes asked.
    average_cct_ns: int  # Mean completion time of the finished coflows.
    ended_ns: int  # When the run ended.
    faulty_ports: NotRequired[int]  # Ports of circuit switches that were faulty at the end.
    finished: int  # Coflows that finished.
    late_packets: int  # Packets that came after their circuit had ended and went back to their ToR.
    makespan_ns: int  # Time from the first arrival to the last finish.
    median_cct_ns: int  # Median of their completion times (nearest rank); zero in results of older versions.
    misdelivered: int  # Packets that came out at the wrong rack, whose ToR dropped them.
    ocs_share: float  # Share of all bytes between racks that went over circuits, 0..=1.
    on_wire_bytes: int  # Payload that the ToRs counted on the wire between racks, sent for the first time or again.
    p95_cct_ns: int  # 95th percentile of their completion times (nearest rank).
    received_bytes: int  # Payload bytes received.
    sent_again_bytes: NotRequired[int | None]  # Bytes among these that TCP says it sent again; live only.
    stats: Stats  # The control loop's counters.
    # Those that finished and took no time, since they stayed within their hosts: zeros among the completion times.
    took_no_time: NotRequired[int]
    unfinished: int  # Coflows that did not.


class Tampered(TypedDict):
    """The network was not as it was built: what was measured meanwhile may not be what it says."""

    found: int  # How many things were found, each once however long it lasted.
    from_ns: int  # When that was first found.
    until_ns: int  # When it was last found.
    what: str  # What was found first.


class Carried(TypedDict):
    """What one link, or several together, carried."""

    bytes: list[int]  # Payload by bucket.
    name: str  # Its name.
    rate_bps: int  # What it can carry when all is well, in bits of payload per second; background traffic is taken off.


class Utilisation(TypedDict):
    """What links carried over time."""

    bucket_ns: int  # Length of every bucket but the last; the first begins at zero.
    # First what stays within racks (`local`), if that is counted and any rack has several hosts. Then every rack's link to the EPS, up and
    # down (`r0.up`, `r0.down`), and every plane with all its ports together (`ocs0`).
    links: list[Carried]
    until_ns: int  # Where the last one ends.


class RunResult(TypedDict):
    """Everything that a run measured; what `--json` writes."""

    caveats: list[Caveat]  # Why the run is not, or not wholly, what its name says; empty if nothing speaks against it.
    coflows: list[CoflowRecord]  # Every coflow, by id.
    congestion: str  # TCP congestion control (`-` in simulation).
    end: Literal["finished", "until", "stopped", "stuck"]  # Why the run ended.
    events: NotRequired[int | None]  # Instants at which something happened; only in simulation.
    forced: bool  # Whether the run went outside the scale that this machine can really carry.
    # The machine: of live runs what it is and what it did; of simulations what the run took, if asked for. All else is the same on every
    # machine.
    machine: NotRequired[Machine | None]
    mechanism: str  # `timed`, `netlink` or `sim`.
    model: NotRequired[str | None]  # How a simulation carried the flows: `sunflow`, `pairs`, `links`, `queues`, `ordered` or `sums`.
    origin: Origin  # Where the result comes from.
    policy: str  # Name of the policy.
    summary: Summary  # The sums.
    # Since when, and until when, another process changed the network under the run: what was measured may not be what it says.
    tampered: NotRequired[Tampered | None]
    topology: str  # Name of the topology.
    utilisation: NotRequired[Utilisation | None]  # What links carried over time; of simulations only if asked for.
    workload: str  # Name of the workload.
    # The instant, by the daemon's clock and its event log, from which this result counts its times; only of live runs.
    zero_ns: NotRequired[int | None]


class Afar(TypedDict):
    """Why maps read from afar."""

    reads_ns: int  # How long they read.
    waits_ns: int  # How long they would have waited at home.


class Limits(TypedDict):
    """What limits a shuffle, each as if it were alone, and how its bytes go."""

    circuit_bytes: int  # What they send.
    circuit_pairs: int  # Pairs of racks that a circuit carries.
    core_bytes: int  # What other pairs send over the core.
    interfaces_ns: int  # The hosts' interfaces.
    pair_ns: int  # The pair of racks that takes longest.
    port_ns: int  # The rack's port that is busy longest, with what is on its way there.
    switches_ns: int  # The cable or switch of a graph that is busy longest.


class RackTasks(TypedDict):
    """Tasks on a rack."""

    rack: int  # The rack.
    tasks: int  # How many.


class Estimate(TypedDict):
    """A placement that was estimated. Times count from the decision on."""

    limits: Limits  # What limits it.
    others_ns: int  # How long others wait for it, in all.
    price_ns: int  # What decides, the least first: the sum of the three.
    racks: list[RackTasks]  # Tasks by rack: the 32 racks with most tasks.
    shuffle_ns: int  # How long the shuffle takes from then on.
    slots_ns: int  # Until all tasks have slots.


class OpenSlots(TypedDict):
    """Slots that are free on a rack."""

    rack: int  # The rack.
    slots: int  # How many.


class Turn(TypedDict):
    """The place of a job in the order, when its tasks were placed."""

    by: Literal["guard", "path", "work", "arrival"]  # What decided.
    of: int  # Jobs that had a task which may start.
    place: int  # From one.
    value_ns: int  # Its value.


class Decision(TypedDict):
    """Where tasks of a stage were put at an instant."""

    afar: NotRequired[Afar | None]  # Of maps that read from afar: why.
    again: bool  # Whether they had been promised other slots, which did not come in time.
    at_ns: int  # The instant.
    estimate: NotRequired[Estimate | None]  # Of a stage that receives: what was expected.
    job: int  # The job.
    losers: int  # Placements that lost.
    lost: list[Estimate]  # The five that came nearest, the nearest first.
    open: list[OpenSlots]  # Of maps: free slots of racks with blocks of the stage, before it got some; of 32 racks.
    racks: list[RackTasks]  # Tasks by rack: the 32 racks with most tasks.
    rule: Literal["home", "from-afar", "least-price", "free-slots"]  # Why they are there.
    stage: int  # The stage, from 0.
    turn: Turn | None  # The job's place in the order.


class Why(TypedDict):
    """Why a task was picked."""

    computing_ns: int  # How long the task would compute.
    fetch_bytes: int  # Bytes that it had to fetch over the network.
    inputs: int  # Tasks on the host that had input to come.
    left_by: list[list[Any]]  # Jobs before it that left the slot to it, and why, in their order; the first.
    moment: Literal["arrival", "slot-change"]  # The moment at which it was picked.
    transfer_ns: int  # How long the network of the host would still be busy for the tasks there.
    wild_card: bool  # Whether it took its place beyond the limit of those, since its coflow was smaller than theirs.


class Explained(TypedDict):
    """Why an attempt of a task started when and where it did. Results have hosts by name (`H` is `String`)."""

    attempt: int  # Its attempt, from one.
    host: str  # The host.
    job: int  # Its job.
    near: Literal["host", "rack", "remote"]  # How near it is to its block.
    stage: int  # Its stage's place in the job.
    started_ns: int  # When it got one.
    task: int  # Its number in the stage.
    waited_since_ns: int  # Since when it might have had a slot: when its stage might, or its last attempt was given up.
    why: NotRequired[Why | None]  # What the policy says of it, if it does.


class JobRecord(TypedDict):
    """The account of one job: a line of the result table, live and simulated."""

    arrival_ns: int  # When it was submitted.
    between_racks_bytes: int  # Bytes between racks, of both.
    finished_ns: int | None  # When its last task finished; `None` if the run ended first.
    id: int  # Its number.
    jct_ns: int | None  # Job completion time.
    name: str  # Its name.
    near: list[int]  # Tasks with a block that ran on its host, in its rack, elsewhere.
    queue: int  # Its queue.
    read_bytes: int  # Bytes of blocks asked of the network.
    recurring: bool  # Whether its sizes and times are known ahead.
    reruns: int  # Starts beyond one a task.
    shuffle_bytes: int  # Bytes of its shuffles as specified, wherever they went.
    shuffle_ccts_ns: list[int]  # By stage that has a shuffle over the network: from its first flow to its last.
    shuffled_bytes: int  # Bytes of shuffles asked of the network.
    slot_time_ns: int  # Time that its tasks held slots.
    started_ns: int | None  # When its first task got a slot.
    tasks: int  # Number of tasks.


class Counters(TypedDict):
    """What happened in all."""

    blocks_restored: int  # Blocks all of whose replicas were gone.
    # Offers that the fallback decided, since the program of the policy `external` gave no answer in time, or a wrong one.
    fallbacks: NotRequired[int]
    hosts_failed: int  # Hosts that went down.
    jobs_finished: int  # Jobs finished.
    late_answers: NotRequired[int]  # Offers among these for which the answer was only late.
    outputs_lost: int  # Outputs that were lost and computed again.
    preempted: int  # Waiting tasks that gave their slot to one they waited for.
    released_holds: int  # Shuffles let go before the policy wanted, because nothing moved any more.
    starts: int  # Tasks started, again included.
    violations: int  # Starts outside a guideline that was not dropped: never, if the policy keeps its word.


class JobsSummary(TypedDict):
    """The sums of a run of jobs."""

    # Mean time of a shuffle over the network, from its first flow to its last; a job that finished and sent nothing counts as zero, so that
    # a policy which sends less does not look worse.
    average_cct_ns: int
    average_jct_ns: int  # Mean job completion time.
    between_racks_bytes: int  # Bytes between racks, among these.
    counters: Counters  # The scheduler's counters.
    finished: int  # Jobs that finished.
    first_fallback: NotRequired[str | None]  # Why the fallback decided the first time.
    guidelines_dropped: list[list[Any]]  # Jobs whose guideline was dropped, and why. Older results call it `fallbacks`.
    jobs_sending: int  # Jobs with a shuffle over the network.
    makespan_ns: int  # Time from the first arrival to the last finish.
    median_cct_ns: int  # Median of these.
    median_jct_ns: int  # Median job completion time (nearest rank).
    near: list[int]  # Tasks with a block that ran on its host, in its rack, elsewhere.
    ocs_share: float  # Share of the bytes between racks that went over circuits, 0..=1.
    p95_cct_ns: int  # 95th percentile of these.
    p95_jct_ns: int  # 95th percentile of the job completion times.
    planned_bytes: int  # Bytes that the scheduler asked of the network: shuffles and reads.
    received_bytes: int  # Bytes that arrived.
    reruns: int  # Starts of tasks beyond one a task.
    slot_time_ns: int  # Time that tasks held slots.
    unfinished: int  # Jobs that did not.


class TaskRun(TypedDict):
    """One attempt of a task: a bar of the timeline. Results have hosts by name (`H` is `String`)."""

    attempt: int  # Its attempt, from one.
    computes_ns: int | None  # When it had its input; `None` if it never did.
    ended_ns: int  # When it gave its slot back.
    finished: bool  # Whether it did its work; else it was given up.
    host: str  # The host.
    job: int  # Its job.
    near: Literal["host", "rack", "remote"]  # How near it was to its block.
    slot: int  # Slot of the host in which it ran.
    stage: int  # Its stage's place in the job.
    started_ns: int  # When it got its slot.
    task: int  # Its number in the stage.


class JobsResult(TypedDict):
    """Everything that a run of jobs measured; what `--json` writes."""

    caveats: list[Caveat]  # Why the run is not, or not wholly, what its name says; empty if nothing speaks against it.
    coflows: list[CoflowRecord]  # Every coflow, by id.
    decisions: NotRequired[list[Decision]]  # Where the placement policy put tasks of that job, and why, if it says so.
    end: Literal["finished", "until", "stopped", "stuck"]  # Why the run ended.
    events: NotRequired[int | None]  # Instants at which something happened; only in simulation.
    explained: NotRequired[list[Explained]]  # Why the tasks of one job started where they did, if asked for.
    forced: NotRequired[bool]  # Whether the run went outside the scale that this machine can really carry.
    grain: str  # `host` or `rack`: between what flows were counted.
    jobs: list[JobRecord]  # Every job, by id.
    # The machine: of live runs what it is and what it did; of simulations what the run took, if asked for. All else is the same on every
    # machine.
    machine: NotRequired[Machine | None]
    mechanism: str  # `timed`, `netlink` or `sim`.
    network: Summary  # The network's sums.
    origin: Origin  # Where the result comes from.
    placement: str  # Name of the placement policy.
    policy: str  # Name of the policy.
    summary: JobsSummary  # The sums.
    # Since when, and until when, another process changed the network under the run: what was measured may not be what it says.
    tampered: NotRequired[Tampered | None]
    timeline: list[TaskRun]  # Every attempt of a task, by its end.
    topology: str  # Name of the topology.
    utilisation: NotRequired[Utilisation | None]  # What links carried over time; of simulations only if asked for.
    workload: str  # Name of the list of jobs.
    # The instant, by the daemon's clock and its event log, from which this result counts its times; only of live runs.
    zero_ns: NotRequired[int | None]
