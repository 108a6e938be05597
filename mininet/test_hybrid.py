#!/usr/bin/python3
"""Tests of hybrid.py with the real Mininet: run as root by `scripts/test`, or `sudo python3 mininet/test_hybrid.py`.

Prints a line `PASS name`, `FAIL name: reason` or `SKIP name: reason` a test (with REQUIRE_KERNEL=1 in the environment, none is
skipped: it fails); exits with 1 if one failed. Every network has a name of its own (mt and this process's id), so that nothing
else on the machine is touched.
"""

import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
HYBRID = os.path.join(HERE, "hybrid.py")
PYTHON = "/usr/bin/python3"
NAME = "mt%d" % (os.getpid() % 10**9)
ATTACH = "/run/heliostat/attach/%s.json" % NAME
TWO_PLANES = "name: %s\nracks: 4\nhosts_per_rack: 2\nnic: 1Gb/s\neps: {uplink: 100Mb/s}\nocs:\n" % NAME + "  - {rate: 1Gb/s, delta: 10ms}\n" * 2


def why_not():
    """Why the network tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("mnexec", "ip", "ping", "iperf", "ifconfig"):
        if subprocess.run(["which", tool], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return "%s is not installed" % tool
    for module in ("mininet.net", "yaml"):
        done = subprocess.run([PYTHON, "-c", "import " + module], stderr=subprocess.DEVNULL, cwd="/", check=False)
        if done.returncode != 0:
            return "%s has no module %s" % (PYTHON, module)
    if subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return "no new network namespace may be made"
    return None


SKIP = why_not()


def in_node(pid, *command):
    """Output of a command in the network namespace of a process."""
    return subprocess.run(["nsenter", "--net", "--target", str(pid), *command], capture_output=True, text=True, check=True).stdout


def dropped():
    """Packets that this machine has dropped since it started because a processor's queue was full."""
    with open("/proc/net/softnet_stat", encoding="ascii") as table:
        return sum(int(line.split()[1], 16) for line in table)


class NetworkTest(unittest.TestCase):
    """A topology file of this process's own name, and ways to run hybrid.py on it."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.file = self.write(TWO_PLANES)

    def write(self, text, name="t.yaml"):
        path = os.path.join(self.dir.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def run_hybrid(self, *arguments, stdin=""):
        command = [PYTHON, HYBRID, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)

    def start_hybrid(self):
        """Start one that stays up; returns it and its attach file's content."""
        lab = subprocess.Popen([PYTHON, HYBRID, self.file, "--no-cli"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lab.stdout.close)
        self.addCleanup(lab.wait)
        self.addCleanup(lab.kill)
        self.assertEqual(lab.stdout.readline(), "ready: %s\n" % ATTACH)
        with open(ATTACH, encoding="utf-8") as source:
            return lab, json.load(source)

    def assert_all_reached(self, name, pingall):
        """Every host reaches every other, by what `pingall` runs; returns what was said.

        A lost packet is tried again once, and reported: a wrong route loses it twice."""
        for tries in (1, 2):
            before = dropped()
            done = pingall()
            said = done.stdout + done.stderr
            if done.returncode == 0 and "*** Results: 0% dropped" in said:
                return said
            why = [line for line in said.splitlines() if re.search(r" X( |$)|[Ee]rror|Results|hybrid\.py:", line)]
            why = "%s: %s; full queues dropped %d" % (name, "; ".join(why) or said[-500:], dropped() - before)
            if tries == 2 or " X " not in why:
                self.fail(why)
            print("RETRY mininet::%s: %s" % (self.id().split(".")[-1], why), flush=True)

    def assert_gone(self):
        self.assertFalse(os.path.exists(ATTACH), "the attach file is left")
        self.assertEqual(glob.glob(ATTACH + ".*"), [])


@unittest.skipIf(SKIP, SKIP)
class Hybrid(NetworkTest):
    def test_every_host_reaches_every_other(self):
        self.assertIn("(56/56 received)", self.assert_all_reached("two planes", lambda: self.run_hybrid(self.file, "--test", "pingall")))
        self.assert_gone()

    def test_iperf_moves_bytes_over_the_eps(self):
        done = self.run_hybrid(self.file, "--quiet", "--test", "iperf")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"Results: \['[\d.]+ [MG]bits/sec', '[\d.]+ [MG]bits/sec'\]")

    def test_the_cli_shows_the_network(self):
        done = self.run_hybrid(self.file, "--quiet", "--cli", stdin="nodes\nnet\nlinks\niperf h0-0 h3-1\npingall\nexit\n")
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("tor1 eps0:tor1 ocs0:tor1 ocs1:tor1 host0:eth0 host1:eth0", said)
        self.assertIn("tor3:ocs1<->ocs1:tor3 (OK OK)", said)
        self.assertRegex(said, r"Results: \['[\d.]+ [MG]bits/sec'")
        self.assertIn("0% dropped", said)

    def test_the_cli_runs_a_command_in_a_host(self):
        done = self.run_hybrid(self.file, "--quiet", "--cli", stdin="h3-1 ip -4 -brief addr show eth0\n")
        self.assertIn("10.3.0.3/32", done.stdout + done.stderr)

    def test_hosts_ask_for_marks_where_links_mark(self):
        for links, asks in (("", "2"), ("links: {uplink: {buffer: 100kB, ecn: 30kB}}\n", "1")):
            self.file = self.write(TWO_PLANES + links)
            lab, attach = self.start_hybrid()
            said = in_node(attach["nodes"]["h1-0"], "cat", "/proc/sys/net/ipv4/tcp_ecn")
            self.assertEqual(said.strip(), asks, links)
            lab.terminate()
            lab.wait(60)

    def test_nodes_are_named_and_addressed_as_heliostat_does(self):
        lab, attach = self.start_hybrid()
        nodes = attach["nodes"]
        self.assertEqual((attach["mark"], attach["name"], attach["topology"]), ("mininet", NAME, self.file))
        hosts = ["h%d-%d" % (r, k) for r in range(4) for k in range(2)]
        self.assertEqual(sorted(nodes), sorted(["eps", "ocs0", "ocs1", "tor0", "tor1", "tor2", "tor3", *hosts]))
        expected = {
            "tor1": {"eps0": "01:00:01", "ocs0": "03:00:00", "ocs1": "03:00:01", "host0": "05:01:00", "host1": "05:01:01"},
            "eps": {"tor%d" % r: "02:00:0%d" % r for r in range(4)},
            "ocs1": {"tor%d" % r: "41:00:0%d" % r for r in range(4)},
            "h3-1": {"eth0": "06:03:01"},
        }
        for node, links in expected.items():
            found = json.loads(in_node(nodes[node], "ip", "-json", "link"))
            found = {link["ifname"]: (link["address"], link["txqlen"], link["mtu"]) for link in found if link["ifname"] != "lo"}
            self.assertEqual(found, {name: ("02:00:00:" + mac, 1000, 1500) for name, mac in links.items()}, node)
        self.assertRegex(in_node(nodes["h3-1"], "ip", "route").strip(), "^default via 169.254.1.1 dev eth0 onlink( congctl cubic)?$")
        self.assertIn("10.2.0.0/16 via 169.254.4.2 dev tor2 onlink", in_node(nodes["eps"], "ip", "route"))
        self.assertIn("169.254.3.2 dev ocs1 lladdr 02:00:00:03:00:01 PERMANENT", in_node(nodes["tor1"], "ip", "neigh"))
        self.assertEqual(in_node(nodes["tor1"], "ip", "-6", "addr").strip(), "")
        lab.send_signal(signal.SIGTERM)
        self.assertEqual(lab.wait(30), 128 + signal.SIGTERM)
        self.assert_gone()
        self.assertEqual([p for p in nodes.values() if os.path.exists("/proc/%d/ns/net" % p)], [], "shells are left")

    def test_nothing_crosses_a_dark_ocs(self):
        lab, attach = self.start_hybrid()
        tor = attach["nodes"]["tor0"]
        in_node(tor, "ip", "route", "add", "10.1.0.2/32", "via", "169.254.3.1", "dev", "ocs0", "onlink")
        ping = ["nsenter", "--net", "--target", str(attach["nodes"]["h0-0"]), "ping", "-c", "2", "-i", "0.2", "-W", "1", "10.1.0.2"]
        self.assertEqual(subprocess.run(ping, stdout=subprocess.DEVNULL, check=False).returncode, 1)
        lab.send_signal(signal.SIGINT)
        self.assertEqual(lab.wait(30), 128 + signal.SIGINT)
        self.assert_gone()

    def test_a_name_in_use_is_refused_and_a_dead_ones_file_is_replaced(self):
        lab, _ = self.start_hybrid()
        second = self.run_hybrid(self.file, "--test", "pingall")
        self.assertEqual(second.returncode, 1)
        self.assertIn("a Mininet network named %s is up already" % NAME, second.stderr)
        lab.kill()
        lab.wait()
        self.assertTrue(os.path.exists(ATTACH), "SIGKILL leaves the file")
        self.test_every_host_reaches_every_other()

    def test_a_bad_file_is_one_clear_error(self):
        good = TWO_PLANES
        cases = {
            "absent": (None, "No such file"),
            "syntax": ("name: [", ":1:8: not YAML"),
            "list": ("- 1\n", "a topology is a mapping"),
            "racks": (good.replace("racks: 4", "racks: many"), "topology.racks: must be a whole number from 1 to 250"),
            "hosts": (good.replace("hosts_per_rack: 2\n", ""), "missing key `hosts_per_rack`"),
            "name": (good.replace(NAME, "../x"), "topology.name: must be 1 to 12 of a-z"),
            "twice": (good.replace("racks: 4", "racks: [{id: 1}, {}]"), "racks[1].id: must be 0 to 1, each once"),
        }
        for name, (text, message) in cases.items():
            path = os.path.join(self.dir.name, "absent") if text is None else self.write(text, name + ".yaml")
            done = self.run_hybrid(path, "--test", "pingall")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1), done.stderr)
            self.assertIn("hybrid.py: " + path, done.stderr)
            self.assertIn(message, done.stderr)

    def test_racks_may_differ(self):
        racks = "racks: [{hosts: 3, id: 1}, {id: 0, hosts: 1}]"
        done = self.run_hybrid(self.write(TWO_PLANES.replace("racks: 4", racks)), "--test", "pingall")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0% dropped (12/12 received)", done.stdout + done.stderr)

    def test_a_file_is_read_as_heliostat_reads_it(self):
        script = "import sys; sys.path.insert(0, sys.argv[1]); import hybrid\nprint(*vars(hybrid.read_plan(sys.argv[2])).values())"
        good = "name: on\nracks: 4\nhosts_per_rack: 2\n"
        cases = {
            "octal": (good.replace("4", "010"), "not '010'"),
            "underscore": (good.replace("4", "1_0"), "not '1_0'"),
            "sexagesimal": (good.replace("4", "0:4"), "not '0:4'"),
            "twice": (good + "racks: 5\n", ":4:1: not YAML: duplicate key `racks`"),
            "merged": ("a: &r {racks: 4}\n<<: *r\n", ":2:1: not YAML: keys are not merged"),
            "word": (good, None),
            "mark": ("\ufeff" + good, None),
            "octal of 1.2": (good.replace("4", "0o4"), None),
            "hexadecimal": (good.replace("4", "0x4"), None),
        }
        for name, (text, message) in cases.items():
            done = subprocess.run([PYTHON, "-c", script, HERE, self.write(text)], capture_output=True, text=True, cwd="/", check=False)
            if message is None:
                self.assertIn(" on 0 None False [2, 2, 2, 2] 4\n", done.stdout, name + done.stderr)
            else:
                self.assertIn(message, done.stderr, name)
        fifo = os.path.join(self.dir.name, "fifo")
        os.mkfifo(fifo)
        done = subprocess.run([PYTHON, "-c", script, HERE, fifo], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("it is no file", done.stderr)

    def test_shipped_topologies_are_read(self):
        script = "import sys; sys.path.insert(0, sys.argv[1]); import hybrid; [hybrid.read_plan(f) for f in sys.argv[2:]]"
        files = sorted(glob.glob(os.path.join(HERE, "..", "topologies", "*.yaml")))
        self.assertTrue(files)
        done = subprocess.run([PYTHON, "-c", script, HERE, *files], capture_output=True, text=True, cwd="/", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_graph_of_switches_joins_all_racks(self):
        graphs = {
            "fat-tree: {k: 2, rate: 1Gb/s}": 2,
            "leaf-spine: {spines: 2, rate: 1Gb/s}": 3,
            "tree: {levels: [{join: 2, uplink: 1Gb/s}, {join: 2, uplink: 1Gb/s}]}": 5,
            "hierarchy: {depth: 2, fan: 3, copies: 2, rate: 1Gb/s}": 3,
            "vl2: {da: 4, di: 4, rate: 1Gb/s}": 4,
            "bcube: {n: 2, k: 1, rate: 1Gb/s}": 4,
            "switches: [{name: a}, {name: b}], links: [{from: b, to: a, rate: 1Gb/s}], racks: [b, a, b]": 3,
        }
        for graph, racks in graphs.items():
            text = "name: %s\nracks: %d\nhosts_per_rack: 1\nnic: 1Gb/s\neps: {uplink: 1Gb/s, graph: {%s}}\n" % (NAME, racks, graph)
            self.file = self.write(text)
            self.assert_all_reached(graph, lambda: self.run_hybrid(self.file, "--test", "pingall"))
        done = self.run_hybrid(self.write(TWO_PLANES.replace("100Mb/s", "100Mb/s, graph: {switches: [{name: a}], racks: [a]}")), "--test", "pingall")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1), done.stderr)
        self.assertIn("eps.graph: it is not for 4 racks", done.stderr)

    def test_mn_custom(self):
        # In namespaces of its own: when `mn` fails it cleans up by killing processes by their names, machine-wide.
        apart = ["unshare", "--net", "--pid", "--fork", "--mount-proc"]
        mn = [*apart, "mn", "--custom", HYBRID, "--topo", "hybrid,file=" + self.file, "--test"]

        def run(test):
            return subprocess.run([*mn, test], capture_output=True, text=True, timeout=120, check=False)

        self.assertIn("(56/56 received)", self.assert_all_reached("mn", lambda: run("pingall")))
        self.assert_gone()
        done = run("iperf")
        self.assertRegex(done.stdout + done.stderr, r"Results: \['[\d.]+ [MG]bits/sec'")
        self.assert_gone()

    def test_killall_stays_in_its_node(self):
        # Mininet's own iperf runs `killall -9 iperf` in a node; sleep stands in for the iperf of somebody else.
        stranger = os.path.join(self.dir.name, "mtstranger")
        os.symlink("/bin/sleep", stranger)
        outside = subprocess.Popen([stranger, "60"])
        self.addCleanup(outside.wait)
        self.addCleanup(outside.kill)
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import hybrid; topo = hybrid.HybridTopo(file=sys.argv[2])\n"
            "hybrid.Mininet.inited = True; net = hybrid.Mininet(topo=topo, controller=None); net.start()\n"
            "inside, other = (net[h].popen([sys.argv[3], '60']) for h in ('h0-0', 'h1-0'))\n"
            "while inside.poll() is None: net['h0-0'].cmd('killall -9 mtstranger')\n"
            "print(inside.poll(), other.poll()); other.kill(); hybrid.take_down(net, topo.lab)\n"
        )
        command = [PYTHON, "-c", script, HERE, self.file, stranger]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", check=False)
        self.assertEqual(done.stdout, "-9 None\n", done.stderr)
        self.assertIsNone(outside.poll(), "a process outside was killed")

    def test_the_machines_limits_stay_as_they_are(self):
        def limits():
            return [open(f, encoding="ascii").read() for f in ("/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/kernel/pty/max", "/proc/sys/fs/file-max")]

        before = limits()
        self.run_hybrid(self.file, "--test", "pingall")
        self.assertEqual(limits(), before)


class Lines(unittest.TestResult):
    """One line a test."""

    failed = 0

    def say(self, word, test, why=""):
        name = "mininet::" + test.id().split(".")[-1] if "." in test.id() else str(test)
        print("%s %s%s" % (word, name, ": " + why if why else ""), flush=True)

    def addSuccess(self, test):
        self.say("PASS", test)

    def addSkip(self, test, reason):
        if os.environ.get("REQUIRE_KERNEL") == "1":
            self.failed += 1
            self.say("FAIL", test, reason + ", and REQUIRE_KERNEL=1 forbids to skip it")
        else:
            self.say("SKIP", test, reason)

    def addFailure(self, test, err):
        self.failed += 1
        lines = self._exc_info_to_string(err, test).split("\n")
        first = next((n for n, line in enumerate(lines) if re.match(r"\w*(Error|Expired)\b", line)), 0)
        self.say("FAIL", test, " ".join([*lines[first : first + 2], *lines[first + 2 :][-7:]]))

    addError = addFailure


def run_tests(case, result):
    """Run a class of tests; the exit code. Names in the environment's TESTS, if any, choose some of them."""
    chosen = os.environ.get("TESTS", "").split()
    for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
        if not chosen or test.id().split(".")[-1] in chosen:
            test.run(result)
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(run_tests(Hybrid, Lines()))
