#!/usr/bin/python3
"""Build a Heliostat topology file with Mininet's own API.

    sudo python3 mininet/hybrid.py topologies/hybrid-4x2.yaml
    sudo mn --custom mininet/hybrid.py --topo hybrid,file=topologies/hybrid-4x2.yaml

Every ToR, the EPS, every OCS plane and every host is a Mininet node in a network namespace of its own:

    tor0, tor1, ...   eps0 (uplink), ocs0, ocs1, ... (one a plane), host0, host1, ... (one a host)
    eps               tor0, tor1, ... (one a ToR)
    sw0, sw1, ...     with `eps.graph`, in place of eps: tor3 for each rack that stands there, cable7 for each of its links
    ocs0, ocs1, ...   tor0, tor1, ... (one a ToR)
    h0-0, h0-1, ...   eth0

The names inside the nodes, the addresses and the MACs are those of the namespaces that Heliostat makes itself, so
`heliostat run FILE --attach NAME` controls either. Without Heliostat all traffic goes over the EPS and the OCS is dark.
Rates, and what `links` says of queues, delay and loss, are not enforced here: Heliostat sets them when it attaches.

This file writes /run/heliostat/attach/NAME.json (the nodes' process ids) and removes it at the end; it touches
nothing else outside its own namespaces. `docs/mininet.md` describes it for users.
"""

import argparse
import atexit
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time

try:
    import yaml
    import mininet.cli
    from mininet.link import Link
    from mininet.log import error, info, output, setLogLevel
    from mininet.net import Mininet
    from mininet.node import Host, Switch
    from mininet.topo import Topo
except ImportError as missing:
    # Debian installs Mininet for the system's interpreter only; another `python3` may come first in PATH.
    SYSTEM = "/usr/bin/python3"
    if __name__ == "__main__" and os.path.exists(SYSTEM) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    sys.exit("hybrid.py: %s; install both parts with: apt-get install mininet python3-yaml" % missing)

# Beside this file, wherever `mn --custom` reads it from.
sys.path.insert(0, os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))
import shapes  # noqa: E402

# `mn --custom` copies every name of this file over its own, so none here may be one that `mn` uses (`main`, `cleanup`,
# `version`, ...) unless it is meant to.

ATTACH_DIR = "/run/heliostat/attach"
MAX_RACKS = 250
MAX_HOSTS_PER_RACK = 250
MAX_PLANES = 16

EXIT_FAILED, EXIT_INVALID = 1, 3


class InvalidTopology(Exception):
    """The file is not a topology; the message says where and why."""


class LabError(Exception):
    """The network cannot be built; the message says why."""


# --- the topology file -------------------------------------------------------------------------------------------


class Plan:
    """The part of a topology file that shapes the network; `heliostat check FILE` checks the rest of it."""

    def __init__(self, path, name, hosts_of, planes, graph, marks):
        self.path, self.name, self.planes, self.graph = path, name, planes, graph
        self.marks = marks  # whether queues of some links mark packets (ECN), which hosts must ask for
        self.hosts_of = hosts_of  # number of hosts, by rack
        self.racks = len(hosts_of)

    def hosts(self):
        """All (rack, index) pairs in the order of their ids."""
        return [(r, k) for r, n in enumerate(self.hosts_of) for k in range(n)]


class Loader(yaml.SafeLoader):
    """YAML 1.2, as Heliostat reads it: `on` and `010` are texts, `1_0` too, no key stands twice, and nothing is merged by `<<`.

    PyYAML reads 1.1, in which they are true, 8 and 10."""

    yaml_implicit_resolvers = {}

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.value == "<<":
                raise yaml.constructor.ConstructorError(None, None, "keys are not merged by `<<`", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, "duplicate key `%.60s`" % key.value, key.start_mark)
            if isinstance(key.value, str):
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node):
        pass


WHOLE = "(?:0|[1-9][0-9]*)"
for RESOLVED, PATTERN, FIRST in [
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", "[-+]?(?:%s|0o[0-7]+|0x[0-9a-fA-F]+)" % WHOLE, "-+0123456789"),
    ("float", r"[-+]?(?:(?:%s\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|%s[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)" % (WHOLE, WHOLE), "-+.0123456789"),
]:
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + RESOLVED, re.compile("^(?:%s)$" % PATTERN), list(FIRST))


def load_yaml(path):
    """The file's content as Python values; raises InvalidTopology with file, line and column."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InvalidTopology("%s: it is no file: a directory, a device or a named pipe" % path)
        with open(path, encoding="utf-8") as source:
            return yaml.load(source, Loader=Loader)
    except OSError as e:
        raise InvalidTopology("%s: %s" % (path, e.strerror)) from e
    except UnicodeDecodeError as e:
        raise InvalidTopology("%s: not UTF-8 text" % path) from e
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        where = ":%d:%d" % (mark.line + 1, mark.column + 1) if mark else ""
        raise InvalidTopology("%s%s: not YAML: %s" % (path, where, e.problem or e.context)) from e
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise InvalidTopology("%s: not YAML: %s" % (path, str(e).splitlines()[0])) from e


def pick(path, where, mapping, key, wanted, accept):
    """The value of a key if `accept` likes it; raises InvalidTopology that says what is wanted."""
    value = mapping.get(key)
    if key not in mapping:
        raise InvalidTopology("%s: %s: missing key `%s`: must be %s" % (path, where, key, wanted))
    if not accept(value):
        raise InvalidTopology("%s: %s.%s: must be %s, not %.60r" % (path, where, key, wanted, value))
    return value


def is_count(value, most):
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def read_plan(path):
    """Read a topology file.

    Raises InvalidTopology, with the file's name in the message."""
    raw = load_yaml(path)
    if not isinstance(raw, dict):
        raise InvalidTopology("%s: a topology is a mapping with the keys name, racks, hosts_per_rack, ..." % path)
    name_rule = "1 to 12 of a-z, 0-9 and -, beginning with a letter"
    name = pick(path, "topology", raw, "name", name_rule, lambda v: isinstance(v, str) and re.fullmatch("[a-z][a-z0-9-]{0,11}", v))
    planes = raw.get("ocs") or []
    if not isinstance(planes, list) or len(planes) > MAX_PLANES:
        raise InvalidTopology("%s: topology.ocs: must be a list of at most %d planes" % (path, MAX_PLANES))
    racks = read_racks(path, raw)
    eps = raw.get("eps")
    try:
        graph = shapes.read_graph(eps.get("graph") if isinstance(eps, dict) else None, len(racks))
    except shapes.InvalidGraph as e:
        raise InvalidTopology("%s: eps.graph: %s" % (path, e)) from e
    links = raw.get("links")
    kinds = links.values() if isinstance(links, dict) else []
    marks = any(isinstance(kind, dict) and "ecn" in kind for kind in kinds)
    return Plan(os.path.abspath(path), name, racks, len(planes), graph, marks)


def read_racks(path, raw):
    """The number of hosts of each rack: `racks` is a number, or a list of racks in which `hosts` and `id` are optional."""
    host_rule, hosts_ok = "a whole number from 1 to %d" % MAX_HOSTS_PER_RACK, lambda v: is_count(v, MAX_HOSTS_PER_RACK)
    rack_rule = "a whole number from 1 to %d, or a list of as many racks" % MAX_RACKS
    racks = pick(path, "topology", raw, "racks", rack_rule, lambda v: is_count(len(v) if isinstance(v, list) else v, MAX_RACKS))
    if not isinstance(racks, list):
        return [pick(path, "topology", raw, "hosts_per_rack", host_rule, hosts_ok)] * racks
    hosts_of = {}
    for position, rack in enumerate(racks):
        where = "racks[%d]" % position
        if not isinstance(rack, dict):
            raise InvalidTopology("%s: %s: a rack is a mapping" % (path, where))
        source = (where, rack) if "hosts" in rack else ("topology", raw)
        key = "hosts" if "hosts" in rack else "hosts_per_rack"
        number = rack.get("id", position)
        if number not in range(len(racks)) or number in hosts_of:
            raise InvalidTopology("%s: %s.id: must be 0 to %d, each once, not %.60r" % (path, where, len(racks) - 1, number))
        hosts_of[number] = pick(path, *source, key, host_rule, hosts_ok)
    return [hosts_of[r] for r in range(len(racks))]


# --- addresses, the same as in the namespaces that Heliostat makes -------------------------------------------------

KIND_TOR_EPS, KIND_EPS, KIND_TOR_OCS, KIND_TOR_HOST, KIND_HOST, KIND_SWITCH, KIND_OCS = 1, 2, 3, 5, 6, 7, 0x40


def mac(kind, number):
    """MAC of a port: its kind, and the number of its rack, rack * 256 + host for ports to hosts, or the switch's for those of a graph."""
    return "02:00:00:%02x:%02x:%02x" % (kind, number >> 8, number & 255)


def tor_ocs_mac(plane, rack):
    """MAC of a ToR's port on an optical plane, shared by all ToRs: a frame that an OCS sends back is accepted."""
    return mac(KIND_TOR_OCS, plane)


def host_number(rack, k):
    return rack * 256 + k


def host_ip(rack, k):
    return "10.%d.0.%d" % (rack, k + 2)


def host_lines(rack, k):
    """What `ip -batch` shall do in a host."""
    return [
        "addr add %s/32 dev eth0" % host_ip(rack, k),
        "neigh replace 169.254.1.1 lladdr %s dev eth0 nud permanent" % mac(KIND_TOR_HOST, host_number(rack, k)),
        "route replace default via 169.254.1.1 dev eth0 onlink" + (" congctl cubic" if cubic_is_there() else ""),
    ]


def cubic_is_there():
    """Whether TCP of this kernel has CUBIC ready: hosts use it whatever the machine's default, as in Heliostat's own namespaces."""
    try:
        with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as source:
            return "cubic" in source.read().split()
    except OSError:
        return False


def eps_mac(plan, rack):
    """MAC of the port that a rack's uplink leads to."""
    return mac(KIND_SWITCH, plan.graph.racks[rack]) if plan.graph else mac(KIND_EPS, rack)


def tor_lines(plan, rack):
    """What `ip -batch` shall do in a ToR."""
    lines = []
    for k in range(plan.hosts_of[rack]):
        lines.append("route replace %s/32 dev host%d" % (host_ip(rack, k), k))
        address = mac(KIND_HOST, host_number(rack, k))
        lines.append("neigh replace %s lladdr %s dev host%d nud permanent" % (host_ip(rack, k), address, k))
    lines.append("neigh replace 169.254.2.1 lladdr %s dev eps0 nud permanent" % eps_mac(plan, rack))
    lines.append("route replace default via 169.254.2.1 dev eps0 onlink")
    for p in range(plan.planes):
        for j in range(plan.racks):
            if j != rack:
                address = tor_ocs_mac(p, j)
                lines.append("neigh replace 169.254.3.%d lladdr %s dev ocs%d nud permanent" % (j, address, p))
    return lines


def rack_lines(racks):
    """What `ip -batch` shall do in the EPS, or in a switch of a graph, for the racks that stand there."""
    lines = []
    for r in racks:
        lines.append("neigh replace 169.254.4.%d lladdr %s dev tor%d nud permanent" % (r, mac(KIND_TOR_EPS, r), r))
        lines.append("route replace 10.%d.0.0/16 via 169.254.4.%d dev tor%d onlink" % (r, r, r))
    return lines


def switch_lines(graph, switch, to_rack):
    """What `ip -batch` shall do in a switch of a graph; `to_rack` is `next_cables` of every rack's switch."""
    lines = rack_lines(r for r, s in enumerate(graph.racks) if s == switch)
    for cable, far in graph.links_of(switch):
        lines.append("neigh replace 169.254.2.1 lladdr %s dev cable%d nud permanent" % (mac(KIND_SWITCH, far), cable))
    for r, first in enumerate(to_rack):
        if first.get(switch) is not None:
            lines.append("route replace 10.%d.0.0/16 via 169.254.2.1 dev cable%d onlink" % (r, first[switch]))
    return lines


# Mininet's `iperf` begins with `killall -9 iperf` in the server's shell, and nodes share the machine's process ids: it would
# end everybody's iperf. In our nodes' shells this function stands in for it: same name and namespace only.
KILLALL_HERE = (
    "killall() { local p c; for p in /proc/[0-9]*; do "
    "if [ $p/ns/net -ef /proc/$$/ns/net ] && { read -r c < $p/comm; } 2> /dev/null && [ \"$c\" = \"$2\" ]; "
    "then kill $1 ${p#/proc/}; fi; done; }"
)


# --- Mininet nodes -------------------------------------------------------------------------------------------------


class HybridNode:
    """What all our nodes share; mixed into Mininet's Host and Switch. `lab` is the network's Lab."""

    forwards = False

    def __init__(self, name, lab=None, **params):
        super().__init__(name, **params)
        self.lab = lab
        # Before there are links, so that each inherits it and none ever has an IPv6 address.
        self.sysctl("ipv6/conf/all/disable_ipv6", 1)
        self.sysctl("ipv6/conf/default/disable_ipv6", 1)
        self.sysctl("ipv4/conf/all/rp_filter", 0)
        self.sysctl("ipv4/conf/default/rp_filter", 0)
        self.sysctl("ipv4/ip_forward", int(self.forwards))
        self.cmd(KILLALL_HERE)
        said = self.cmd("type -t killall").strip()
        if said != "function":
            raise LabError("%s: its shell would not take a function: %s" % (name, said))
        lab.born(self)

    def sysctl(self, key, value):
        """Set a value of this namespace; a kernel without IPv6 has not got all of them."""
        self.cmd("test ! -e /proc/sys/net/%s || echo %d > /proc/sys/net/%s" % (key, value, key))

    def ip_batch(self, lines):
        """Run `ip` commands in this node.

        Raises LabError with what `ip` said."""
        text = "".join(line + "\n" for line in ["link set lo up", *lines])
        batch = self.popen(["ip", "-batch", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = batch.communicate(text.encode())
        if batch.returncode != 0:
            raise LabError("%s: ip: %s" % (self.name, said.decode(errors="replace").strip()))

    def terminate(self):
        self.lab.withdraw()
        super().terminate()


class HybridHost(HybridNode, Host):
    """A server: eth0 with a /32 and a default route to its ToR. `rack` and `k` say which."""

    def config(self, **_params):
        """Set addresses. They follow from `rack` and `k`; Mininet's own (`mn --mac`, `--ipbase`) are ignored."""
        rack, k = self.params["rack"], self.params["k"]
        self.ip_batch(host_lines(rack, k))
        if self.lab.plan.marks:
            self.sysctl("ipv4/tcp_ecn", 1)
        intf = self.intf("eth0")
        intf.ip, intf.prefixLen = host_ip(rack, k), "32"
        return {}


class HybridSwitch(HybridNode, Switch):
    """A switch without OpenFlow, in a namespace of its own. Mininet sees a Switch, so `pingall` is among hosts only."""

    def lines(self):
        """What `ip -batch` shall do here once all links are there."""
        return []

    def start(self, _controllers):
        self.ip_batch(self.lines())
        self.lab.started(self)

    def stop(self, deleteIntfs=True):
        self.lab.withdraw()
        super().stop(deleteIntfs)


class Tor(HybridSwitch):
    """Top-of-rack switch: the kernel's IPv4 forwarding, everything to other racks by the EPS."""

    forwards = True

    def lines(self):
        return tor_lines(self.lab.plan, self.params["rack"])


class Eps(HybridSwitch):
    """The electrical packet switch: one route a rack."""

    forwards = True

    def lines(self):
        return rack_lines(range(self.lab.plan.racks))


class GraphSwitch(HybridSwitch):
    """A switch of a graph: a route a rack, by a shortest way. Heliostat spreads pairs of racks over all shortest ways."""

    forwards = True

    def lines(self):
        lab = self.lab
        if lab.to_rack is None:
            lab.to_rack = [lab.plan.graph.next_cables(s) for s in lab.plan.graph.racks]
        return switch_lines(lab.plan.graph, self.params["number"], lab.to_rack)


class Ocs(HybridSwitch):
    """One optical plane: ports, and nothing that joins them until Heliostat does."""


class HybridLink(Link):
    """A veth pair that says which nodes it joins: interface names alone repeat from node to node."""

    def __str__(self):
        return "<->".join("%s:%s" % (intf.node, intf) for intf in (self.intf1, self.intf2))


class HybridTopo(Topo):
    """A topology file as a Mininet Topo; `file` is its path."""

    def build(self, file=None, **unknown):
        if file is None or unknown:
            raise InvalidTopology("the topology takes one argument: --topo hybrid,file=TOPOLOGY.yaml")
        self.plan = plan = read_plan(str(file))
        self.lab = lab = Lab(plan)
        lab.refuse_if_taken()
        self.add_packet_switches(plan.graph)
        for p in range(plan.planes):
            self.add_switch("ocs%d" % p, Ocs)
        for r in range(plan.racks):
            tor = self.add_switch("tor%d" % r, Tor, rack=r)
            eps = "sw%d" % plan.graph.racks[r] if plan.graph else "eps"
            self.join(tor, "eps0", mac(KIND_TOR_EPS, r), eps, tor, eps_mac(plan, r))
            for p in range(plan.planes):
                self.join(tor, "ocs%d" % p, tor_ocs_mac(p, r), "ocs%d" % p, tor, mac(KIND_OCS + p, r))
        for r, k in plan.hosts():
            host = self.addHost("h%d-%d" % (r, k), cls=HybridHost, lab=lab, rack=r, k=k)
            n = host_number(r, k)
            self.join(host, "eth0", mac(KIND_HOST, n), "tor%d" % r, "host%d" % k, mac(KIND_TOR_HOST, n))

    def add_packet_switches(self, graph):
        """The EPS, or the switches of the graph and their links."""
        if graph is None:
            self.add_switch("eps", Eps)
            return
        for k in range(graph.switches):
            self.add_switch("sw%d" % k, GraphSwitch, number=k)
        for c, ends in enumerate(graph.cables):
            (a, b), cable = ends, "cable%d" % c
            self.join("sw%d" % a, cable, mac(KIND_SWITCH, a), "sw%d" % b, cable, mac(KIND_SWITCH, b))

    def add_switch(self, name, cls, **params):
        dpid = "%x" % (len(self.g) + 1)
        self.lab.switches.append(name)
        return self.addSwitch(name, cls=cls, lab=self.lab, inNamespace=True, dpid=dpid, **params)

    def join(self, a, a_name, a_mac, b, b_name, b_mac):
        self.addLink(a, b, cls=HybridLink, intfName1=a_name, addr1=a_mac, intfName2=b_name, addr2=b_mac)


class HybridNet(Mininet):
    """Mininet with another `iperf`: its own waits for ever with iperf 2.1, which does not report an empty connection."""

    def iperf(self, hosts=None, l4Type="TCP", udpBw="10M", fmt=None, seconds=5, port=5001):
        """Run iperf from the first host to the second; returns the [server, client] rates, as Mininet does."""
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output("*** Iperf: testing %s bandwidth between %s and %s\n" % (l4Type, client, server))
        common = ["iperf", "-p", str(port)] + (["-u"] if l4Type == "UDP" else []) + (["-f", fmt] if fmt else [])
        # -P 1: the server ends by itself after one connection.
        serving = server.popen([*common, "-s", "-P", "1"], stderr=subprocess.STDOUT)
        try:
            wait_for_port(server, l4Type, port, serving)
            rate = ["-b", udpBw] if l4Type == "UDP" else []
            client_said = read_all(client.popen([*common, "-c", server.IP(), "-t", str(seconds), *rate], stderr=subprocess.STDOUT), seconds + 20)
            server_said = read_all(serving, 20)
        finally:
            if serving.poll() is None:
                serving.kill()
                serving.wait()
        result = [self._parseIperf(server_said), self._parseIperf(client_said)]
        if l4Type == "UDP":
            result.insert(0, udpBw)
        output("*** Results: %s\n" % result)
        return result


class HybridCLI(mininet.cli.CLI):
    """Mininet's CLI, for node names with a hyphen: `h0-1 ping h3-0`."""

    identchars = mininet.cli.CLI.identchars + "-"


def read_all(process, seconds):
    """Output of a process that shall end within `seconds`; a later one is killed, and what it said is enough."""
    try:
        said = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[0]
    return said.decode(errors="replace")


def wait_for_port(node, protocol, port, process):
    """Wait until `process` listens on a port of `node`.

    Raises LabError if it ends before."""
    suffix = ":%04X" % port
    for _ in range(200):
        with open("/proc/%d/net/%s" % (process.pid, protocol.lower()), encoding="ascii") as table:
            rows = [line.split() for line in table]
        if any(row[1].endswith(suffix) for row in rows[1:]):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    said = "" if process.poll() is None else read_all(process, 1).strip()
    raise LabError("%s: iperf does not listen on port %d: %s" % (node.name, port, said or "timed out"))


# --- what Heliostat finds -------------------------------------------------------------------------------------------


class Lab:
    """One network: its plan, its nodes' process ids, and the attach file, there while all of it is up."""

    def __init__(self, plan):
        self.plan = plan
        self.switches = []
        self.to_rack = None  # made once, by the first switch of a graph that starts
        self.waiting_for = None
        self.pids = {}
        self.written = None

    @property
    def file(self):
        return os.path.join(ATTACH_DIR, self.plan.name + ".json")

    def born(self, node):
        self.pids[node.name] = node.pid

    def started(self, node):
        """A switch is ready; after the last one the network is."""
        if self.waiting_for is None:
            self.waiting_for = set(self.switches)
        self.waiting_for.discard(node.name)
        if not self.waiting_for and self.written is None:
            self.announce()

    def refuse_if_taken(self):
        """Raises LabError while another network of this name is up; removes the file of one that is gone."""
        try:
            with open(self.file, encoding="utf-8") as source:
                nodes = json.load(source)["nodes"]
            alive = [n for n, pid in nodes.items() if is_mininet_node(n, pid)]
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            alive = []
        if alive:
            raise LabError("a Mininet network named %s is up already (%s)" % (self.plan.name, self.file))
        os.unlink(self.file)

    def announce(self):
        """Write the attach file: at once or not at all, and never over another network's."""
        text = json.dumps({"topology": self.plan.path, "name": self.plan.name, "mark": "mininet", "nodes": self.pids}, indent=1)
        os.makedirs(ATTACH_DIR, mode=0o755, exist_ok=True)
        scratch = "%s.%d" % (self.file, os.getpid())
        with open(scratch, "w", encoding="utf-8") as out:
            out.write(text + "\n")
        try:
            self.refuse_if_taken()
            os.link(scratch, self.file)
        except FileExistsError as e:
            raise LabError("a Mininet network named %s has just come up (%s)" % (self.plan.name, self.file)) from e
        finally:
            os.unlink(scratch)
        self.written = text + "\n"
        atexit.register(self.withdraw)
        info("*** %s is up. From another terminal: sudo heliostat run %s --attach %s\n" % (self.plan.name, self.plan.path, self.plan.name))
        info("*** Until then no link has a rate: iperf shows what the processors carry\n")

    def withdraw(self):
        """Remove the attach file if it is the one that we wrote."""
        if self.written is None:
            return
        ours, self.written = self.written, None
        try:
            with open(self.file, encoding="utf-8") as source:
                if source.read() == ours:
                    os.unlink(self.file)
        except OSError:
            pass


def is_mininet_node(name, pid):
    """Whether this process is Mininet's shell of the node of this name."""
    try:
        with open("/proc/%d/cmdline" % int(pid), "rb") as source:
            return ("mininet:%s" % name).encode() in source.read().split(b"\0")
    except (OSError, ValueError):
        return False


topos = {"hybrid": HybridTopo}


# `mn --custom` takes these as its network and its CLI; see the note at the imports.
if __name__ != "__main__":
    Mininet, CLI = HybridNet, HybridCLI


# --- run by itself --------------------------------------------------------------------------------------------------


def run_test(net, test):
    """Run one of Mininet's tests; True if it went well."""
    if test == "pingall":
        return net.pingAll() == 0
    first, last = net.hosts[0], net.hosts[-1]
    rates = net.iperf((first, last), seconds=3)
    return bool(rates) and all(r and not r.startswith("0.00") for r in rates)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Build a Heliostat topology with Mininet, and open Mininet's CLI.")
    parser.add_argument("topology", help="a topology file, such as topologies/hybrid-4x2.yaml")
    parser.add_argument("--test", action="append", default=[], choices=["pingall", "iperf"], help="run this test; may be repeated")
    cli = parser.add_mutually_exclusive_group()
    cli.add_argument("--cli", action="store_true", default=None, help="open Mininet's CLI (the default without --test)")
    cli.add_argument("--no-cli", dest="cli", action="store_false", help="no CLI: without --test stay up until SIGINT or SIGTERM")
    parser.add_argument("--quiet", action="store_true", help="print results and errors only")
    return parser.parse_args()


def stop_on(number, _frame):
    """Signal handler: leave by an exception that Mininet's CLI does not swallow."""
    sys.exit(128 + number)


def take_down(net, lab):
    """Remove everything, whatever state it is in. The veth pairs go with their namespaces."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lab.withdraw()
    net.links.clear()
    for node in [*net.switches, *net.hosts]:
        node.intfs.clear()
    net.stop()


def run_lab(options):
    """Build, test, open the CLI, take down; the exit code."""
    if os.geteuid() != 0:
        raise LabError("Mininet needs root: sudo python3 mininet/hybrid.py %s" % options.topology)
    # Mininet would raise limits of the whole machine by sysctl; our own process is enough.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    HybridNet.inited = True
    topo = HybridTopo(file=options.topology)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_on)
    net = HybridNet(topo=topo, controller=None, build=False)
    try:
        net.build()
        net.start()
        passed = [run_test(net, test) for test in options.test]
        if options.cli or (options.cli is None and not options.test):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            HybridCLI(net)
        elif not options.test:
            print("ready: %s" % topo.lab.file, flush=True)
            while True:
                signal.pause()
        return 0 if all(passed) else EXIT_FAILED
    finally:
        take_down(net, topo.lab)


def hybrid_main():
    options = parse_arguments()
    setLogLevel("output" if options.quiet else "info")
    try:
        return run_lab(options)
    except InvalidTopology as e:
        error("hybrid.py: %s\n" % e)
        return EXIT_INVALID
    except LabError as e:
        error("hybrid.py: %s\n" % e)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(hybrid_main())
