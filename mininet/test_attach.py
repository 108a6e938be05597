#!/usr/bin/python3
"""Tests of `heliostat run --attach` on networks that the real Mininet made: run as root by `scripts/test`.

HELIOSTAT_BIN is the program (default: target/debug/heliostat). Prints lines as test_hybrid.py does, and like it touches only
a network of its own name.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from test_hybrid import ATTACH, HERE, HYBRID, NAME, PYTHON, SKIP, Lines, NetworkTest, in_node, run_tests

BIN = os.environ.get("HELIOSTAT_BIN", os.path.join(HERE, "..", "target", "debug", "heliostat"))
POLICY = os.path.join(HERE, "..", "policies", "c-through.yaml")
PRIORITIES = os.path.join(HERE, "..", "policies", "priority.yaml")
MECHANISMS = ("timed", "netlink")
if SKIP is None and not os.access(BIN, os.X_OK):
    SKIP = "%s is not there; name it by HELIOSTAT_BIN" % BIN
# The EPS carries 100 Mb/s, a circuit 1 Gb/s.
WELL_ABOVE_THE_EPS = 300


def mbits(said):
    """The rates in what iperf, or Mininet's `iperf`, said."""
    return [float(n) * (1000 if unit == "G" else 1) for n, unit in re.findall(r"([\d.]+) ([MG])bits/sec", said)]


def sees(pid):
    """What a node's namespace holds, without counters and without what the kernel numbers itself."""
    asked = (["tc", "qdisc"], ["ip", "rule"], ["ip", "route", "show", "table", "all"], ["ip", "-details", "link"])
    said = "".join(in_node(pid, *command) for command in asked)
    # A link's state settles some time after it is made.
    return "\n".join(sorted(re.sub(r" state \w+", "", line.strip()) for line in said.splitlines()))


class Cli:
    """Mininet's CLI, fed one command at a time."""

    def __init__(self, test):
        command = [PYTHON, HYBRID, test.file, "--cli"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.leave)
        self.said_until("is up. From another terminal")
        with open(ATTACH, encoding="utf-8") as source:
            self.nodes = json.load(source)["nodes"]

    def said_until(self, text):
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError("Mininet ended before it said: " + text)

    def tell(self, command):
        self.process.stdin.write(command + "\n")

    def pingall(self):
        self.tell("pingall")
        return self.said_until("*** Results:")

    def iperf(self, *hosts):
        self.tell("iperf " + " ".join(hosts))
        return mbits(self.said_until("*** Results:"))

    def leave(self):
        """End it as a user does; by force if that takes too long."""
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Controller:
    """`heliostat run --attach`."""

    def __init__(self, test, mechanism="auto", name=NAME, policy=POLICY, more=(), waits=True):
        command = [BIN, "run", test.file, "--policy", policy, "--attach", NAME, "--name", name]
        command += ["--listen", "127.0.0.1:0", "--mechanism", mechanism, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.said, self.url = "", None
        for line in self.process.stderr if waits else ():
            self.said += line
            found = re.search(r"API at (\S+)", line)
            if found:
                self.url = found.group(1)
                break

    def exec(self, node, *command):
        return subprocess.run([BIN, "exec", "--name", NAME, node, "--", *command], capture_output=True, text=True, check=True).stdout

    def show(self, what):
        command = [BIN, "show", what, "-o", "json", "--controller", self.url]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def post(self, coflow):
        """Has a coflow sent; returns its number."""
        body = json.dumps({"send": True, **coflow}).encode()
        asked = urllib.request.Request(self.url + "/api/v1/coflows", body, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return json.load(answer)["id"]

    def coflow(self, number):
        with urllib.request.urlopen("%s/api/v1/coflows/%d" % (self.url, number), timeout=10) as answer:
            return json.load(answer)

    def end(self, number=signal.SIGINT):
        """Send a signal (none if 0), and wait; returns the exit code."""
        if number:
            self.process.send_signal(number)
        self.said += self.process.stderr.read()
        return self.process.wait(30)


@unittest.skipIf(SKIP, SKIP)
class Attach(NetworkTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(subprocess.run, [BIN, "clean"], stdout=subprocess.DEVNULL, check=False)

    def attach(self, **options):
        controller = Controller(self, **options)
        self.assertIsNotNone(controller.url, controller.said)
        return controller

    def snapshot(self, cli):
        """What all nodes see. The kernel tells of a link's carrier some time after the link is up, so that is waited for."""
        deadline = time.monotonic() + 5
        while True:
            seen = {node: sees(pid) for node, pid in cli.nodes.items()}
            if "NO-CARRIER" not in str(seen) or time.monotonic() > deadline:
                return seen

    def load(self, cli, server, client, seconds):
        """Run iperf between two hosts in the background; returns its client once it has begun."""
        command = ["nsenter", "--net", "--target", str(cli.nodes[server]), "iperf", "-s", "-p", "5099", "-P", "1"]
        serving = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(serving.stdout.close)
        self.addCleanup(serving.wait)
        self.addCleanup(serving.kill)
        serving.stdout.readline()
        rack, k = server[1:].split("-")
        to = "10.%s.0.%d" % (rack, int(k) + 2)
        command = ["nsenter", "--net", "--target", str(cli.nodes[client]), "iperf", "-c", to, "-p", "5099", "-t", str(seconds)]
        sending = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(sending.stdout.close)
        self.addCleanup(sending.wait)
        self.addCleanup(sending.kill)
        sending.stdout.readline()
        return sending

    def comes(self, true):
        """Wait until a few control cycles have made something true."""
        deadline = time.monotonic() + 3
        while not true():
            self.assertLess(time.monotonic(), deadline)

    def check_circuits_carry(self, cli, controller):
        """Load rides a circuit, is shown, and lets pings through."""
        before = controller.show("demand")["over_ocs_bytes"]
        sending = self.load(cli, "h1-0", "h0-0", 5)
        self.assertIn("0% dropped (56/56 received)", cli.pingall())
        self.comes(lambda: (0, 1) in [(c["input"], c["output"]) for c in controller.show("circuits")["circuits"]])
        rate = mbits(sending.communicate(timeout=60)[0])
        self.assertGreater(rate[-1], WELL_ABOVE_THE_EPS)
        grown = controller.show("demand")["over_ocs_bytes"][0][1] - before[0][1]
        self.assertGreater(grown, 100_000_000, "bytes over the OCS")
        rates = cli.iperf("h2-1", "h3-0")
        self.assertGreater(min(rates), WELL_ABOVE_THE_EPS)
        self.assertIn("0% dropped (56/56 received)", cli.pingall())

    def test_circuits_carry_mininets_traffic_and_leave_nothing(self):
        cli = Cli(self)
        before = self.snapshot(cli)
        for mechanism in MECHANISMS:
            controller = self.attach(mechanism=mechanism)
            self.assertIn("mechanism " + mechanism, controller.said)
            self.check_circuits_carry(cli, controller)
            self.assertIn("10.3.0.3/32", controller.exec("h3-1", "ip", "-brief", "address", "show", "eth0"))
            self.assertEqual(controller.end(), 0, controller.said)
            self.assertEqual(self.snapshot(cli), before, mechanism)
            self.assertIn("0% dropped (56/56 received)", cli.pingall())
            self.assertGreater(min(cli.iperf("h0-0", "h1-0")), 0)
        cli.leave()
        self.assert_gone()

    def carried(self, controller, node, port, priority):
        """Bytes that left a queue, as of the last reading of the counters."""
        ports = [p for p in controller.show("queues")["ports"] if (p["node"], p["port"]) == (node, port)]
        return sum(q["bytes"] for q in ports[0]["queues"] if q["priority"] == priority)

    def test_ports_serve_strict_priorities_and_are_left_as_they_were(self):
        cli = Cli(self)
        before = self.snapshot(cli)
        for mechanism in MECHANISMS:
            controller = self.attach(mechanism=mechanism, policy=PRIORITIES)
            self.assertIn("strict priorities at every port", controller.said)
            # Both cross the rack's link to the EPS, of 100 Mb/s: 4 s of it, and 0.8 s.
            last = controller.post({"name": "last", "priority": 7, "flows": [{"from": 0, "to": 2, "bytes": 48000000}]})
            self.comes(lambda: controller.coflow(last)["received_bytes"] > 0)
            first = controller.post({"name": "first", "priority": 0, "flows": [{"from": 1, "to": 3, "bytes": 10000000}]})
            self.comes(lambda: controller.coflow(first)["state"] == "finished")
            self.assertEqual(controller.coflow(last)["state"], "active")
            # A fair share would be half of the link.
            self.assertLess(controller.coflow(first)["cct_ns"], 1.3e9)
            self.comes(lambda: min(self.carried(controller, "tor0", "eps0", priority) for priority in (0, 7)) > 5000000)
            deadline = time.monotonic() + 30
            while controller.coflow(last)["state"] != "finished":
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(controller.coflow(last)["received_bytes"], 48000000)
            self.assertEqual(controller.end(), 0, controller.said)
            self.assertEqual(self.snapshot(cli), before, mechanism)
            self.assertIn("0% dropped (56/56 received)", cli.pingall())

    def test_what_a_killed_controller_left_is_no_hindrance_and_can_be_cleaned(self):
        cli = Cli(self)
        before = self.snapshot(cli)
        for mechanism in MECHANISMS:
            self.attach(mechanism=mechanism).end(signal.SIGKILL)
            self.assertNotEqual(self.snapshot(cli), before)
            # Under another name and by the other mechanism: it must not matter who was killed.
            second = self.attach(mechanism=MECHANISMS[mechanism == MECHANISMS[0]], name=NAME + "b")
            self.assertIn("0% dropped (56/56 received)", cli.pingall())
            self.assertEqual(second.end(signal.SIGTERM), 0, second.said)
            self.assertEqual(self.snapshot(cli), before)
            self.attach(mechanism=mechanism).end(signal.SIGKILL)
            cleaned = subprocess.run([BIN, "clean"], capture_output=True, text=True, check=True).stdout
            self.assertIn("removed what was left in 15 nodes of Mininet's network %s\n" % NAME, cleaned)
            self.assertEqual(self.snapshot(cli), before)
        self.assertIn("0% dropped (56/56 received)", cli.pingall())

    def test_a_kill_at_any_instant_leaves_nodes_that_can_be_cleaned(self):
        cli = Cli(self)
        before = self.snapshot(cli)
        draw = random.Random(int(os.environ.get("HELIOSTAT_SEED", "1")))
        for _ in range(int(os.environ.get("HELIOSTAT_KILLS", "4"))):
            controller = Controller(self, mechanism=draw.choice(MECHANISMS), waits=False)
            try:
                controller.process.wait(draw.random())
            except subprocess.TimeoutExpired:
                controller.process.kill()
                controller.process.wait()
            controller.process.stderr.close()
            if draw.random() < 0.5:
                subprocess.run([BIN, "clean"], stdout=subprocess.DEVNULL, check=True)
            else:
                following = self.attach(mechanism=draw.choice(MECHANISMS))
                self.assertEqual(following.end(signal.SIGTERM), 0, following.said)
            self.assertEqual(self.snapshot(cli), before)
        self.assertIn("0% dropped (56/56 received)", cli.pingall())

    def test_several_who_clean_at_once_are_not_in_each_others_way(self):
        cli = Cli(self)
        before = self.snapshot(cli)
        for _ in range(4):
            self.attach(mechanism="netlink").end(signal.SIGKILL)
            several = [subprocess.Popen([BIN, "clean"], stdout=subprocess.DEVNULL) for _ in range(4)]
            self.assertEqual([one.wait() for one in several], [0] * 4)
            self.assertEqual(self.snapshot(cli), before)

    def test_clients_find_what_became_of_their_coflows_after_a_kill(self):
        cli = Cli(self)
        with tempfile.TemporaryDirectory() as journal:
            first = self.attach(more=["--journal", journal])
            done = first.post({"name": "short", "flows": [{"from": 0, "to": 2, "bytes": 100000}]})
            self.comes(lambda: first.coflow(done)["state"] == "finished")
            lost = first.post({"name": "long", "flows": [{"from": 0, "to": 2, "bytes": 10**10}]})
            self.comes(lambda: first.coflow(lost)["received_bytes"] > 0)
            first.end(signal.SIGKILL)
            second = self.attach(more=["--journal", journal])
            self.assertEqual((second.coflow(done)["state"], second.coflow(done)["received_bytes"]), ("finished", 100000))
            self.assertEqual(second.coflow(lost)["state"], "cancelled")
            self.assertEqual(second.coflow(lost)["why"], "lost: the daemon ended before the coflow had finished")
            self.assertGreater(second.post({"flows": [{"from": 0, "to": 2, "bytes": 1}]}), lost)
            self.assertIn("0% dropped (56/56 received)", cli.pingall())
            self.assertEqual(second.end(signal.SIGTERM), 0, second.said)

    def test_mininet_that_is_killed_under_traffic_ends_the_controller(self):
        for mechanism in MECHANISMS:
            cli = Cli(self)
            controller = self.attach(mechanism=mechanism)
            number = controller.post({"flows": [{"from": 0, "to": 2, "bytes": 10**10}]})
            self.comes(lambda: controller.coflow(number)["received_bytes"] > 0)
            cli.process.kill()
            cli.process.wait()
            self.assertEqual(controller.end(0), 1)
            self.assertRegex(controller.said, r"the network is gone: node \S+ \(process \d+\) has ended\n$")
            self.assertNotIn("panicked", controller.said)
            self.assertFalse(os.path.exists("/run/heliostat/" + NAME))
            # What Mininet would have removed.
            os.remove(ATTACH)

    def test_a_graph_of_switches_is_controlled_and_left_as_it_was(self):
        graphs = {
            "fat-tree: {k: 4, rate: 1Gb/s}": 8,
            "tree: {levels: [{join: 2, uplink: 1Gb/s}, {join: 2, uplink: 1Gb/s}]}": 5,
            "hierarchy: {depth: 3, fan: 2, copies: 2, rate: 1Gb/s, switch: 500Mb/s}": 4,
            "vl2: {da: 4, di: 4, rate: 1Gb/s}": 4,
            "bcube: {n: 2, k: 1, rate: 1Gb/s}": 4,
        }
        for graph, racks in graphs.items():
            eps = "eps: {uplink: 1Gb/s, graph: {%s}}\nocs: [{rate: 1Gb/s, delta: 10ms}]\n" % graph
            self.file = self.write("name: %s\nracks: %d\nhosts_per_rack: 1\nnic: 1Gb/s\n%s" % (NAME, racks, eps))
            cli = Cli(self)
            before = self.snapshot(cli)
            for mechanism in MECHANISMS:
                for number in (signal.SIGINT, signal.SIGKILL):
                    controller = self.attach(mechanism=mechanism)
                    self.assertIn("0% dropped", cli.pingall(), graph)
                    controller.end(number)
                    if number == signal.SIGKILL:
                        subprocess.run([BIN, "clean"], capture_output=True, check=True)
                    self.assertEqual(self.snapshot(cli), before, (graph, mechanism))
            cli.leave()
            self.assert_gone()

    def test_a_network_that_goes_away_ends_the_controller(self):
        for mechanism in MECHANISMS:
            cli = Cli(self)
            controller = self.attach(mechanism=mechanism)
            cli.leave()
            self.assertEqual(controller.end(0), 1)
            self.assertRegex(controller.said, r"the network is gone: node \S+ \(process \d+\) has ended\n$")
            self.assertNotIn("panicked", controller.said)
            self.assert_gone()

    def test_clean_leaves_a_running_controller_alone(self):
        cli = Cli(self)
        controller = self.attach()
        during = self.snapshot(cli)
        subprocess.run([BIN, "clean"], capture_output=True, check=True)
        self.assertEqual(self.snapshot(cli), during)
        self.assertEqual(controller.end(), 0, controller.said)

    def test_what_is_not_free_is_refused(self):
        cli = Cli(self)
        first = self.attach()
        second = Controller(self, name=NAME + "b")
        self.assertEqual(second.end(0), 1)
        self.assertIn("is controlled by the fabric %s already; stop it first" % NAME, second.said)
        self.assertGreater(len(first.show("ports")), 0)
        self.assertEqual(first.end(), 0, first.said)
        before = self.snapshot(cli)
        host = cli.nodes["h1-1"]
        for command, undo, why in (
            ("ip link set eth0 alias mine", "ip link set eth0 alias", "link eth0 of node h1-1 is somebody else's: its alias is `mine`"),
            ("tc qdisc add dev eth0 root handle 5: tbf rate 1gbit burst 1mb latency 1ms", "tc qdisc del dev eth0 root", "has a queue already (tbf)"),
        ):
            in_node(host, *command.split())
            refused = Controller(self)
            self.assertEqual(refused.end(0), 1)
            self.assertIn(why, refused.said)
            in_node(host, *(undo.split() + ([""] if undo.endswith("alias") else [])))
            self.assertEqual(self.snapshot(cli), before, why)

    def test_a_process_that_is_no_node_is_refused(self):
        cli = Cli(self)
        other = os.path.join(self.dir.name, "other.json")
        for pid, why in ((os.getpid(), "node eps (process %d) is gone" % os.getpid()), (2**22 + 1, "is gone")):
            with open(other, "w", encoding="utf-8") as out:
                json.dump({"nodes": {**cli.nodes, "eps": pid}}, out)
            command = [BIN, "run", self.file, "--attach", other, "--listen", "127.0.0.1:0"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    sys.exit(run_tests(Attach, Lines()))
