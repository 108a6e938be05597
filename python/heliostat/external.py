"""A circuit scheduler or a placement policy for Heliostat in ten lines of Python.

    import heliostat

    def decide(ask):
        i, j, _ = max(ask.demand, key=lambda d: d[2], default=(0, 1, 0))
        return [(i, j)]

    heliostat.serve(decide)

Heliostat starts the program (`scheduler: external` in a policy file) and asks it once each reconfiguration interval, live and in virtual
time. `decide` gets an `Ask` and returns one of:

- a list of pairs (from rack, to rack): the circuits of every plane, until the next decision;
- a list with one list of pairs for each plane;
- a list with one list of `Configuration`s for each plane: one after another, each for `hold_ns` nanoseconds;
- a list of `Circuit`s with times of their own.

A placement policy is the same with `place`, under `placement: {policy: external, ...}`:

    import heliostat

    def place(offer):
        job = offer.ready[0]
        return heliostat.Start(job.job, job.stages[0].stage)

    heliostat.serve(place=place)

Heliostat asks it whenever a rack has a free slot. `place` gets an `Offer` and returns a `Start`, or None: nothing starts until something
changes in the rack, a stage becomes ready, or the time of an `Again(at_ns)` that it returns instead has come.

Print to standard error only: standard output belongs to the answers. Needs Python 3.9 and nothing else: without the
package, a copy of this file as `heliostat_external.py` beside your program will do, with `import heliostat_external as heliostat`. (A copy
called `heliostat.py` would hide the package.)

A program that runs by itself, on this machine or another one, takes the same questions by HTTP: `heliostat.serve_http(8000, decide)`, and
`external: {url: "http://127.0.0.1:8000/"}` in the policy file.
"""

import json
import sys
import threading
import traceback
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Optional, Union

PROTOCOL = 1

Pair = tuple[int, int]

Message = dict[str, Any]
"""A line of JSON."""


@dataclass
class Plane:
    """An optical plane."""

    rate_bps: int  # of a circuit
    delta_ns: int  # dark time of a change
    duplex: bool  # circuits come in pairs: (i, j) needs (j, i)
    all_stop: bool  # all circuits are dark while one changes
    current: list[Pair]  # circuits that are up when the decision takes effect
    unusable_inputs: list[int]  # racks whose input port is faulty or held by hand
    unusable_outputs: list[int]

    def is_usable(self, i: int, j: int) -> bool:
        """Whether a circuit from rack i to rack j may be set (and back, on a duplex plane)."""
        inputs, outputs = self.unusable_inputs, self.unusable_outputs
        there = i not in inputs and j not in outputs
        return there and (not self.duplex or (j not in inputs and i not in outputs))

    def bytes_in(self, span_ns: int) -> int:
        """Bytes that a circuit carries in a time."""
        return max(span_ns, 0) * self.rate_bps // 8_000_000_000


@dataclass
class Coflow:
    """An open coflow, where demand is what coflows declare."""

    id: int
    arrival_ns: int
    weight: int
    sent: int  # bytes
    rest: list[tuple[int, int, int]]  # from rack, to rack, bytes still to send


@dataclass
class Ask:
    """All that a decision may depend on. Times are nanoseconds of the run's clock, racks numbers from 0."""

    cycle: int  # number of the cycle, from 0
    at_ns: int  # when the decision takes effect
    interval_ns: int  # until the next decision
    racks: int
    eps_bps: int  # the slowest rack's rate on the electrical network; 0 if there is none
    demand: list[tuple[int, int, int]]  # from rack, to rack, bytes; only pairs with demand, in order
    planes: list[Plane]
    coflows: list[Coflow] = field(default_factory=list)

    @classmethod
    def of(cls, message: Message) -> "Ask":
        """From a line of JSON that was read."""
        planes = [Plane(**{**p, "current": _tuples(p["current"])}) for p in message["planes"]]
        coflows = [Coflow(**{**c, "rest": _tuples(c["rest"])}) for c in message["coflows"]]
        return cls(**{**message, "demand": _tuples(message["demand"]), "planes": planes, "coflows": coflows})

    def matrix(self) -> list[list[int]]:
        """Demand as racks x racks bytes."""
        rows = [[0] * self.racks for _ in range(self.racks)]
        for i, j, size in self.demand:
            rows[i][j] = size
        return rows


@dataclass
class Shuffled:
    """A shuffle into a stage."""

    stage: int  # that sends
    bytes: int  # all of it
    output_in: list[tuple[int, int]]  # rack, finished tasks whose output is there


@dataclass
class ReadyStage:
    """A stage of which a task may start."""

    stage: int  # its place in the job
    pending: int  # tasks without a slot
    running: int
    finished: int
    near: str  # how near to its block a task can run in the offered rack: host, rack, remote
    running_in: list[tuple[int, int]]  # rack, tasks of the stage that hold slots there
    inputs: list[Shuffled]


@dataclass
class ReadyJob:
    """A job that has a task which may start."""

    job: int
    name: str
    queue: int
    arrival_ns: int
    stages: list[ReadyStage]  # those of which a task may start


@dataclass
class Offer:
    """A free slot of a rack, and all that a decision may depend on."""

    offer: int  # its number, from 0
    at_ns: int  # now
    rack: int
    hosts: list[tuple[int, int]]  # of the rack: host, free slots
    free: list[int]  # free slots by rack
    shuffling_into: list[int]  # bytes of shuffles on their way into each rack
    ready: list[ReadyJob]  # in the order of the queues: whose turn it is comes first

    @classmethod
    def of(cls, message: Message) -> "Offer":
        """From a line of JSON that was read."""

        def stage(s: Message) -> ReadyStage:
            inputs = [Shuffled(i["from"], i["bytes"], _tuples(i["output_in"])) for i in s["inputs"]]
            return ReadyStage(**{**s, "running_in": _tuples(s["running_in"]), "inputs": inputs})

        ready = [ReadyJob(**{**j, "stages": [stage(s) for s in j["stages"]]}) for j in message["ready"]]
        return cls(**{**message, "hosts": _tuples(message["hosts"]), "ready": ready})


@dataclass
class Start:
    """A task that starts."""

    job: int
    stage: int
    host: Optional[int] = None  # of any rack; None: the one of the offered rack that suits the stage best
    task: Optional[int] = None  # None: the one whose block is nearest


@dataclass
class Again:
    """Nothing starts; the slot is offered again at this time at the latest."""

    at_ns: int


def start(offer: Offer, decision: Union[Start, Again, None]) -> Message:
    """What `place` returned as the protocol has it."""
    if isinstance(decision, Again):
        return {"offer": offer.offer, "start": None, "again_at_ns": decision.at_ns}
    chosen = {k: v for k, v in vars(decision).items() if v is not None} if decision else None
    return {"offer": offer.offer, "start": chosen}


def _tuples(lists: list[list[int]]) -> list[Any]:
    return [tuple(x) for x in lists]


@dataclass
class Configuration:
    """The circuits of a plane for a time."""

    pairs: list[Pair]
    hold_ns: Optional[int] = None  # time with light; None: until further notice, only in the last configuration

    def message(self) -> Message:
        """As the protocol has it."""
        return {"pairs": self.pairs} if self.hold_ns is None else {"pairs": self.pairs, "hold_ns": self.hold_ns}


@dataclass
class Circuit:
    """A circuit with times of its own: dark for the plane's delta before `up_from_ns`, then lit until `until_ns`."""

    plane: int
    input: int
    output: int
    up_from_ns: int
    until_ns: Optional[int] = None


def answer(ask: Ask, decision: list[Any]) -> Message:
    """What `decide` returned as the protocol has it."""
    if decision and all(isinstance(c, Circuit) for c in decision):
        return {"cycle": ask.cycle, "circuits": [{k: v for k, v in vars(c).items() if v is not None} for c in decision]}
    if all(isinstance(p, tuple) for p in decision):
        decision = [decision for _ in ask.planes]
    planes = [p if p and isinstance(p[0], Configuration) else [Configuration(p)] for p in decision]
    return {"cycle": ask.cycle, "planes": [[c.message() for c in plane] for plane in planes]}


Decide = Callable[[Ask], list[Any]]
Place = Callable[[Offer], Union[Start, Again, None]]


def reply(text: Union[str, bytes], decide: Optional[Decide], place: Optional[Place]) -> str:
    """The answer to a question of Heliostat."""
    message = json.loads(text)
    if "protocol" in message:
        said: Message = {"protocol": PROTOCOL}
    elif "offer" in message:
        if place is None:
            raise TypeError("asked for a task, and serve() was given no `place`")
        offer = Offer.of(message)
        said = start(offer, place(offer))
    else:
        if decide is None:
            raise TypeError("asked for circuits, and serve() was given no `decide`")
        ask = Ask.of(message)
        said = answer(ask, decide(ask))
    return json.dumps(said)


def serve(decide: Optional[Decide] = None, place: Optional[Place] = None) -> None:
    """Answers questions until Heliostat has no more: about circuits, about slots, or about both."""
    for line in sys.stdin:
        print(reply(line, decide, place), flush=True)


def serve_http(port: int, decide: Optional[Decide] = None, place: Optional[Place] = None, host: str = "127.0.0.1") -> None:
    """Answers questions by HTTP, one after another, until the program is ended. Port 0 is any free one; standard error says which."""
    alone = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes

        def do_POST(self) -> None:
            question = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                with alone:
                    status, body = 200, reply(question, decide, place).encode()
            except Exception as e:  # Heliostat counts it, and falls back
                traceback.print_exc()
                status, body = 500, repr(e).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            try:
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:  # Heliostat has ended, or does not wait any more
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((host, port), Handler) as server:
        server.daemon_threads = True
        print(f"listens at http://{host}:{server.server_address[1]}/", file=sys.stderr, flush=True)
        server.serve_forever()
