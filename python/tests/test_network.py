"""A network that runs here, and the client of its API. Needs root."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import until
from described import api

import heliostat
from heliostat import Network, Refused, _binary


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with heliostat.run("hybrid-4x2", "c-through") as running:
        yield running


def test_types_of_the_api_are_those_of_its_description(network: Network) -> None:
    pytest.importorskip("ruff")
    assert Path(_binary.__file__).with_name("api.py").read_text(encoding="utf-8") == api(network)


def test_a_coflow_is_posted_followed_and_found(network: Network) -> None:
    ended = network.events("coflow-finished")
    body: heliostat.api.CoflowBody = {"name": "first", "send": True, "pairs": [{"from": "r0", "to": "r2", "bytes": "20MB"}]}
    coflow = network.post(body, key="first")
    assert network.post(body, key="first")["id"] == coflow["id"]
    assert [c["id"] for c in network.flows()] == [coflow["id"]]
    coflow = network.wait(coflow["id"], within_s=60)
    assert (coflow["state"], coflow["received_bytes"]) == ("finished", 20_000_000)
    until("the counters have been read", lambda: network.demand()["sent_bytes"][0][2] >= 20_000_000)
    event = next(ended)
    assert (event["event"], event["id"], event["cct_ns"]) == ("coflow-finished", coflow["id"], coflow["cct_ns"])
    assert next(network.events("coflow-finished", after=0))["id"] == coflow["id"]
    assert coflow["id"] in [c["id"] for c in network.coflows("finished", name="first")]
    assert network.coflows("finished", name="second") == []


def test_lists_are_read_to_their_end(network: Network) -> None:
    many = [network.post({"name": "many", "pairs": [{"from": 0, "to": 1, "bytes": "1MB"}]})["id"] for _ in range(3)]
    pages = network.request("GET", "coflows", query={"name": "many", "limit": 2})
    assert (len(pages["coflows"]), pages["more"]) == (2, True)
    assert [c["id"] for c in network.coflows(name="many")] == many
    for id in many:
        network.cancel(id)
        assert network.wait(id)["state"] == "cancelled"


def test_a_coflow_of_ones_own_is_finished(network: Network) -> None:
    id = network.post({"name": "own", "pairs": [{"from": 0, "to": 1, "bytes": "1MB"}]})["id"]
    finished = network.finish(id)
    assert (finished["state"], finished["received_bytes"]) == ("finished", 1_000_000)


def test_one_that_does_not_end_is_told(network: Network) -> None:
    id = network.post({"name": "long", "send": True, "pairs": [{"from": "r1", "to": "r3", "bytes": "10GB"}]})["id"]
    with pytest.raises(TimeoutError, match=rf"coflow {id} is active after 0\.1 s: \d+ of 10000000000 bytes"):
        network.wait(id, within_s=0.1)
    network.cancel(id)
    assert network.wait(id, within_s=60)["state"] == "cancelled"


def test_placements_are_estimated_proposed_and_begun(network: Network) -> None:
    shuffle: heliostat.api.CoflowBody = {
        "send": True,
        "place": {"maps": [{"rack": 0, "bytes": "2MB"}], "tasks": 2, "slots": [{"rack": 2, "free": 2}]},
    }
    before = len(network.coflows())
    assert network.estimate(shuffle)["chosen"]["racks"] == [{"rack": 2, "tasks": 2}]
    assert len(network.coflows()) == before
    proposed = network.post(shuffle)
    assert proposed["state"] == "proposed"
    assert network.confirm(proposed["id"])["state"] == "active"
    assert network.wait(proposed["id"], within_s=60)["state"] == "finished"


def test_policies_and_circuits_are_changed(network: Network) -> None:
    network.change_policy(interval="60ms", ageing=None)
    assert network.policy()["interval"] == "60ms"
    network.set_circuits([{"plane": 0, "input": "r3", "output": "r1"}])
    until("it is set", lambda: [(c["input"], c["output"]) for c in network.circuits() if c["manual"]] == [(3, 1)])
    network.set_circuits([])
    until("it is given back", lambda: not any(c["manual"] for c in network.circuits()))
    with pytest.raises(Refused, match="were fixed when this run started") as refused:
        network.change_policy(network="priority")
    assert refused.value.status == 409


def test_refusals_have_their_place(network: Network) -> None:
    with pytest.raises(Refused, match="/pairs/0/to: no rack 9: they are 0 to 3") as refused:
        network.post({"pairs": [{"from": "r0", "to": "r9", "bytes": 1}]})
    assert refused.value.status == 422
    with pytest.raises(Refused, match="coflow 7 does not exist"):
        network.coflow(7)


def test_other_routes_are_asked(network: Network) -> None:
    assert network.request("GET", "topology") == network.request("GET", "/api/v1/topology")
    assert "# TYPE heliostat_cycles counter" in network.request("GET", "/metrics")
    assert network.request("GET", "stats", query={"ranges": True, "unknown": None})["cycles"] >= 0
    with pytest.raises(heliostat.Error, match="ftp://localhost: allowed: http://"):
        Network("ftp://localhost")


def test_it_is_found_by_address_socket_and_name(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    name = network.stats()["name"]
    (there,) = (other for other in json.loads(_binary.ask("ps", "--output=json")) if other["name"] == name)
    for at in (there["api"], there["api"] + "/", network.at, name):
        assert Network(at).topology() == network.topology()
    monkeypatch.setenv("HELIOSTAT_CONTROLLER", there["api"])
    assert Network().stats()["name"] == name


def test_events_end_with_the_network(network: Network) -> None:
    with heliostat.run("hybrid-4x2", name="python-ends") as other:
        events = other.events()
        first = next(events)
    rest = [first, *events]
    # The last one only says when the stream ended.
    assert "seq" not in rest.pop()
    assert all(later["seq"] > first["seq"] for later in rest[1:])


def test_tokens(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with heliostat.run("hybrid-4x2", token="0123456789abcdef") as network:
        (url,) = (other["api"] for other in json.loads(_binary.ask("ps", "--output=json")) if other["name"] == network.stats()["name"])
        with pytest.raises(Refused) as refused:
            Network(url).stats()
        assert refused.value.status == 401
        assert Network(url, token="0123456789abcdef").stats()["cycles"] >= 0


def test_it_ends_with_its_block(network: Network) -> None:
    def broken() -> None:
        with heliostat.run("hybrid-4x2", name="python-block") as other:
            ended.append(other)
            next(other.events())
            raise ZeroDivisionError

    ended: list[Network] = []
    with pytest.raises(ZeroDivisionError):
        broken()
    with pytest.raises(heliostat.Error, match="python-block/api.sock"):
        ended[0].stats()
    with pytest.raises(heliostat.Error, match="no network python-block of this user runs"):
        Network("python-block")
    with pytest.raises(heliostat.Error, match="no topology of that name"), heliostat.run("nosuch"):
        pass


def test_one_that_is_not_there() -> None:
    with pytest.raises(heliostat.Error, match=r"http://127\.0\.0\.1:1: .*refused"):
        Network("http://127.0.0.1:1").stats()
