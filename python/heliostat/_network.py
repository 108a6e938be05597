"""Networks that run: a client of their REST API, and one that is started here."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Union, cast
from urllib.parse import urlencode, urljoin, urlsplit

from . import _binary, api
from ._binary import Error, Option, StrPath

Event = dict[str, Any]
"""An event: its number `seq`, its time `at_ns`, its kind `event`, and what belongs to that kind. Where the network has forgotten events
that were asked for, `missed` alone says how many."""

Query = Union[str, int, bool, None]

CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}

POLL_S = 0.02
"""How often a coflow is looked at that is waited for."""

_runs = itertools.count()


class Refused(Error):
    """What a network said about a request that it did not carry out."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        """The status of HTTP, such as 404, 409 or 422."""


class _Unix(http.client.HTTPConnection):
    """A connection to a unix socket."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Network:
    """A network that runs, by its REST API (docs/api.md). `heliostat.api` has the types of what is sent and answered.

    All methods raise `Refused` where the network says no, and `Error` where it cannot be reached.
    """

    def __init__(self, at: str | None = None, *, token: str | None = None, timeout_s: float = 10) -> None:
        """Speaks to a network.

        Args:
            at: Its address (`http://...`), the path of its unix socket (with a `/`), or the name of a network of this user on this machine.
                `$HELIOSTAT_CONTROLLER` or `http://127.0.0.1:7447` if left out.
            token: The token of its API; `$HELIOSTAT_TOKEN` if left out.
            timeout_s: How long an answer may take.

        Raises:
            Error: No network of this name runs, or this is no address.
        """
        at = at or os.environ.get("HELIOSTAT_CONTROLLER") or "http://127.0.0.1:7447"
        self.at = at if "/" in at else _socket(at)
        if "://" in at and urlsplit(at).scheme not in CONNECTIONS:
            raise Error(f"{at}: allowed: http://, https://, the path of a socket, or the name of a network")
        self._token = token or os.environ.get("HELIOSTAT_TOKEN")
        self._timeout = timeout_s

    def __repr__(self) -> str:
        return f"heliostat.Network({self.at!r})"

    def topology(self) -> api.Topology:
        """Racks, hosts, rates and planes."""
        return cast("api.Topology", self.request("GET", "topology"))

    def stats(self) -> api.Stats:
        """What the control loop has done."""
        return cast("api.Stats", self.request("GET", "stats"))

    def demand(self) -> api.Demand:
        """Demand, bytes sent, bytes over circuits and backlog, each as racks x racks."""
        return cast("api.Demand", self.request("GET", "demand"))

    def circuits(self) -> list[api.Circuit]:
        """The circuits: with light, being set up, or promised."""
        return cast("api.Circuits", self.request("GET", "circuits"))["circuits"]

    def set_circuits(self, circuits: Sequence[api.ManualCircuit]) -> None:
        """Sets all circuits by hand at one instant, and gives back those that were set before and are not among them."""
        self.request("PUT", "circuits", {"circuits": list(circuits)})

    def coflows(self, state: str | None = None, name: str | None = None) -> list[api.Coflow]:
        """The coflows that the network remembers, by their ids: all, or those in a state or of a name."""
        found: list[api.Coflow] = []
        more = True
        while more:
            after = found[-1]["id"] if found else None
            page = cast("api.Coflows", self.request("GET", "coflows", query={"state": state, "name": name, "after": after}))
            found += page["coflows"]
            more = page.get("more", False)
        return found

    def coflow(self, id: int) -> api.Coflow:
        """A coflow."""
        return cast("api.Coflow", self.request("GET", f"coflows/{id}"))

    def post(self, coflow: api.CoflowBody, *, key: str | None = None) -> api.Coflow:
        """Declares a coflow; with `send` Heliostat sends it. One with `place` is proposed, and begins when it is confirmed.

        Args:
            coflow: The body.
            key: A text of yours by which the network knows a coflow that is posted again, after a lost answer, and makes it once.
        """
        return cast("api.Coflow", self.request("POST", "coflows", coflow, headers={"Idempotency-Key": key} if key else {}))

    def estimate(self, coflow: api.CoflowBody) -> api.Proposal:
        """What a coflow would get: placement, circuits, and how long it would take. Nothing changes."""
        return cast("api.Proposal", self.request("POST", "coflows", coflow, query={"dryRun": True}))

    def confirm(self, id: int, how: api.Confirmation | None = None) -> api.Coflow:
        """Begins a coflow that was proposed."""
        return cast("api.Coflow", self.request("POST", f"coflows/{id}/confirm", how))

    def finish(self, id: int) -> api.Coflow:
        """Finishes a coflow that you send: all of it has arrived, whatever the counters of the ToRs have seen."""
        return cast("api.Coflow", self.request("POST", f"coflows/{id}/finish"))

    def cancel(self, id: int) -> None:
        """Ends a coflow that is open, or takes back one that was proposed."""
        self.request("DELETE", f"coflows/{id}")

    def wait(self, id: int, within_s: float | None = None) -> api.Coflow:
        """The coflow when it has ended: look at its `state`, which is finished, cancelled or expired.

        Raises:
            TimeoutError: It has not ended within this time.
        """
        until = None if within_s is None else time.monotonic() + within_s
        while (coflow := self.coflow(id))["state"] in ("active", "proposed"):
            if until is not None and time.monotonic() > until:
                raise TimeoutError(
                    f"coflow {id} is {coflow['state']} after {within_s} s: {coflow['received_bytes']} of {coflow['asked_bytes']} bytes"
                )
            time.sleep(POLL_S)
        return coflow

    def flows(self) -> list[api.CoflowLeft]:
        """What the flows on their way have still to send, by coflow."""
        return cast("api.OpenFlows", self.request("GET", "flows"))["coflows"]

    def policy(self) -> dict[str, Any]:
        """The policy, with the keys of a policy's file."""
        return cast("dict[str, Any]", self.request("GET", "policy"))

    def change_policy(self, **keys: Any) -> None:
        """Changes keys of the policy from the next cycle on, such as `interval="50ms"`. A key that is None is as if it were left out.

        Raises:
            Refused: The policy makes no sense (422), or these keys are fixed while a network runs (409).
        """
        policy, headers = self._exchange("GET", "policy")
        changed = {key: value for key, value in {**policy, **keys}.items() if value is not None}
        self.request("PUT", "policy", changed, headers={"If-Match": headers["ETag"]})

    def events(self, *kinds: str, after: int | None = None) -> Iterator[Event]:
        """Events from now on, as they happen: all, or those of some kinds, such as `"coflow-finished"`. Ends with the network.

        Args:
            kinds: What `event` of them may be.
            after: The number `seq` of an earlier event, from which to go on.
        """
        query = {"types": ",".join(kinds) or None}
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        connection, response = self._open("GET", "events", None, query, headers, None)

        def following() -> Iterator[Event]:
            with closing(connection), _reached(self.at):
                for line in response:
                    if line.startswith(b"data:"):
                        yield json.loads(line[5:])

        return following()

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Query] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """A request of any route: `ports`, `/api/v1/ports`, `/metrics`. Returns the answer's JSON or text; None if it has no body."""
        return self._exchange(method, path, body, query or {}, headers or {})[0]

    def _exchange(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Query] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Any, http.client.HTTPMessage]:
        """A request; the answer's JSON and headers."""
        connection, response = self._open(method, path, body, query, headers, self._timeout)
        with closing(connection), _reached(self.at):
            text = response.read()
        is_json = response.headers.get_content_subtype().endswith("json")
        return (json.loads(text) if is_json else text.decode() or None), response.headers

    def _open(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, Query],
        headers: Mapping[str, str],
        timeout: float | None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A request that was accepted, whose answer is to be read."""
        url = urlsplit(self.at)
        connection = CONNECTIONS[url.scheme](url.netloc, timeout=timeout) if url.scheme else _Unix(self.at, timeout)
        asked = urlencode(
            {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items() if value is not None}
        )
        sent = dict(headers)
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            with _reached(self.at):
                text = None if body is None else json.dumps(body)
                connection.request(method, f"{url.path.rstrip('/') if url.scheme else ''}{urljoin('/api/v1/', path)}?{asked}", text, sent)
                response = connection.getresponse()
                if response.status >= 400:
                    raise Refused(response.status, _reason(response))
        except BaseException:
            connection.close()
            raise
        return connection, response


@contextmanager
def run(topology: StrPath, policy: StrPath | None = None, *, name: str | None = None, **options: Option) -> Iterator[Network]:
    """Builds a network on this machine, and ends it at the end of the `with` block. Needs what `heliostat run` needs.

    Args:
        topology: The network: a file, or the name of a shipped one.
        policy: How circuits are decided: a file, or the name of a shipped one; c-through if left out.
        name: What the network is called; a name that no other one has if left out.
        options: Other options of `heliostat run`, such as `force=True`.

    Yields:
        The network, when it is up.

    Raises:
        Error: It does not come up, with what the program said; or it has ended before the block did.
    """
    name = name or f"python-{os.getpid()}-{next(_runs)}"
    given: dict[str, Option] = {"policy": policy, "name": name, "listen": "127.0.0.1:0", **options}
    _binary.ask("run", os.fspath(topology), "--detach", *_binary.words(given))
    try:
        yield Network(name)
    finally:
        _binary.ask("stop", name)


@contextmanager
def _reached(at: str) -> Iterator[None]:
    """Says which network could not be reached."""
    try:
        yield
    except (OSError, http.client.HTTPException) as e:
        raise Error(f"{at}: {e or type(e).__name__}") from e


def _reason(response: http.client.HTTPResponse) -> str:
    """What a problem document says (RFC 9457), with the place in the body that it is about."""
    text = response.read()
    try:
        problem = json.loads(text)
        place = f"{problem['pointer']}: " if problem.get("pointer") else ""
        return f"{place}{problem.get('detail') or problem['title']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{response.status} {response.reason}: {text[:200].decode(errors='replace')}"


def _socket(name: str) -> str:
    """The socket of a network of this user that runs on this machine."""
    homes = ["/run/heliostat", f"{os.environ.get('XDG_RUNTIME_DIR') or '/run'}/heliostat", f"/tmp/heliostat-{os.getuid()}"]
    sockets = [Path(home, name, "api.sock") for home in homes]
    found = next((path for path in sockets if os.path.exists(path) and path.stat().st_uid == os.getuid()), None)
    if found is None:
        raise Error(f"no network {name} of this user runs; `heliostat ps` lists them")
    return str(found)
