"""PushBox and Hadoop's fair scheduler, written from PushBox's paper (TPDS 2022, sections 4 and 5) and not from Heliostat's code.

A fluid simulation of one switch: hosts with full-duplex links and slots; jobs of maps that only compute and of reduces that fetch when all maps are
done, each task by flows of its own. Flows share by strict priority, and max-min within one.

    oracle.py pushbox|hadoop M < JOBS      M: tasks that may fetch on a host at once

JOBS and the answer are JSON: `{"hosts": 3, "slots": 4, "rate": bytes/s, "jobs": [{"at": s, "maps": [s, ...], "reduces": [[bytes, s], ...]}]}`,
and a row a task: job, stage, task, host, and when it starts, computes and ends, in milliseconds.
"""

import heapq
import json
import sys

LEVELS = 6


class Task:
    def __init__(self, job, stage, number, host, size, now):
        self.job, self.stage, self.number, self.host, self.size = job, stage, number, host, size
        self.times, self.flows, self.level = [now, None, None], 0, 0


class Flow:
    def __init__(self, task, source, left):
        self.task, self.source, self.left, self.rate = task, source, left, 0.0


class Job:
    def __init__(self, number, spec):
        self.number, self.at, self.stage, self.held, self.running = number, spec["at"], 0, 0, 0
        self.maps = [(0, seconds) for seconds in spec["maps"]]
        self.reduces = [tuple(r) for r in spec["reduces"]]
        self.size = sum(bytes_ for bytes_, _ in self.reduces)
        self.waiting, self.output = [], {}

    def tasks(self):
        return self.reduces if self.stage else self.maps


class Network:
    """Rates of all flows: the level of the highest priority first, max-min within it."""

    @staticmethod
    def share(flows, hosts, rate):
        out, into = [rate] * hosts, [rate] * hosts
        for level in sorted({f.task.level for f in flows}):
            open_ = [f for f in flows if f.task.level == level]
            while open_:
                sends, gets = {}, {}
                for f in open_:
                    sends[f.source] = sends.get(f.source, 0) + 1
                    gets[f.task.host] = gets.get(f.task.host, 0) + 1
                parts = {("s", h): max(out[h], 0) / n for h, n in sends.items()}
                parts.update({("g", h): max(into[h], 0) / n for h, n in gets.items()})
                least = min(parts.values())
                full = {link for link, part in parts.items() if part <= least * (1 + 1e-9) + 1e-6}
                fixed = [f for f in open_ if ("s", f.source) in full or ("g", f.task.host) in full]
                for f in fixed:
                    f.rate = least
                    out[f.source] -= least
                    into[f.task.host] -= least
                open_ = [f for f in open_ if f not in fixed]


class World:
    def __init__(self, policy, most, spec):
        self.policy, self.most, self.now = policy, most, 0.0
        self.hosts, self.rate = spec["hosts"], float(spec["rate"])
        self.free = [spec["slots"]] * self.hosts
        self.fetching = [[] for _ in range(self.hosts)]
        self.flows, self.events, self.count, self.log = [], [], 0, []
        self.open, self.new, self.dirty = [], [], set()
        # The moving average of what a host receives, by which PushBox estimates how long its network is busy.
        self.got, self.mark, self.marked, self.measured = [0.0] * self.hosts, [0.0] * self.hosts, 0.0, [self.rate] * self.hosts
        for number, job in enumerate(spec["jobs"]):
            self.push(job["at"], "job", Job(number, job))

    def push(self, at, kind, what):
        heapq.heappush(self.events, (at, self.count, kind, what))
        self.count += 1

    def opened(self, job):
        """A stage's tasks may start: maps as they are numbered, PushBox's reduces the largest first."""
        job.waiting = list(range(len(job.tasks())))
        if job.stage and self.policy == "pushbox":
            job.waiting.sort(key=lambda k: -job.reduces[k][0])
        self.new.append(job)
        self.dirty.update(range(self.hosts))

    def busy(self, host):
        """How long what is on its way to a host takes at the rate that was measured."""
        left = sum(f.left for f in self.flows if f.task.host == host)
        return left / max(self.measured[host], self.rate / 100)

    def fetches(self, job, host):
        """What the job's next task would fetch on a host."""
        if not job.stage:
            return 0.0
        return job.reduces[job.waiting[0]][0] * (1 - job.output.get(host, 0) / sum(job.output.values()))

    def in_order(self):
        """Fair: the job that holds the fewest slots first, then the oldest."""
        return sorted((j for j in self.open if j.waiting), key=lambda j: (j.held, j.at, j.number))

    def start(self, job, host):
        number = job.waiting.pop(0)
        size, seconds = job.tasks()[number]
        task = Task(job, job.stage, number, host, job.size if job.stage else size, self.now)
        self.free[host] -= 1
        job.held += 1
        job.running += 1
        self.log.append(task)
        if job.stage:
            total = sum(job.output.values())
            for source, n in sorted(job.output.items()):
                if source != host and size * n:
                    self.flows.append(Flow(task, source, size * n / total))
                    task.flows += 1
        if task.flows:
            self.fetching[host].append(task)
            self.rank(host)
        else:
            self.compute(task, seconds)

    def compute(self, task, seconds):
        task.times[1] = self.now
        self.push(self.now + seconds, "end", task)

    def rank(self, host):
        """PushBox, section 4: on each host the task of the smallest coflow has the highest priority."""
        if self.policy == "pushbox":
            by_size = sorted(self.fetching[host], key=lambda t: (t.size, t.job.at, t.job.number, self.log.index(t)))
            for level, task in enumerate(by_size):
                task.level = min(level, LEVELS)

    def has_room(self, job, host):
        """Fewer than m tasks fetch there, or this one's coflow is smaller than all that do (a wild card)."""
        sizes = [t.size for t in self.fetching[host]]
        return len(sizes) < self.most or job.size < min(sizes)

    def by_pushbox(self, host):
        """Algorithm 2: a slot is free on a host."""
        yielded = False
        for job in self.in_order():
            if self.fetches(job, host) > 0:
                if self.has_room(job, host):
                    return job
                yielded = True
            elif not yielded or job.tasks()[job.waiting[0]][1] < self.busy(host):
                return job
        return None

    def arrivals(self):
        """Algorithm 3: a job has come; hosts whose network is busy for the shortest time first."""
        while self.new:
            job = self.new[0]
            by_load = sorted((h for h in range(self.hosts) if self.free[h]), key=lambda h: (self.busy(h), -self.free[h], h))
            for host in by_load if job.waiting else []:
                first = self.in_order()[0] is job
                near = first or job.tasks()[job.waiting[0]][1] < self.busy(host)
                if self.has_room(job, host) if self.fetches(job, host) > 0 else near:
                    self.start(job, host)
                    break
            else:
                self.new.pop(0)

    def schedule(self):
        if self.policy == "pushbox":
            self.arrivals()
        self.new.clear()
        while self.dirty:
            if self.policy == "pushbox":
                host = min(self.dirty, key=lambda h: (self.busy(h), -self.free[h], h))
                job = self.by_pushbox(host) if self.free[host] else None
            else:
                host = max(self.dirty, key=lambda h: (self.free[h], -h))
                job = next(iter(self.in_order()), None) if self.free[host] else None
            if job:
                self.start(job, host)
            else:
                self.dirty.discard(host)

    def ended(self, task):
        job = task.job
        task.times[2] = self.now
        self.free[task.host] += 1
        job.held -= 1
        job.running -= 1
        self.dirty.add(task.host)
        if not task.stage:
            job.output[task.host] = job.output.get(task.host, 0) + 1
        if not job.running and not job.waiting:
            if not job.stage and job.reduces:
                job.stage = 1
                self.opened(job)
            else:
                self.open.remove(job)

    def moved(self, until):
        for f in self.flows:
            f.left -= f.rate * (until - self.now)
            self.got[f.task.host] += f.rate * (until - self.now)
        self.now = until
        over = [f for f in self.flows if f.left <= max(1.0, f.rate * 1e-7)]
        self.flows = [f for f in self.flows if f not in over]
        if self.now - self.marked > 0.1:
            for h in range(self.hosts):
                if self.fetching[h]:
                    sample = (self.got[h] - self.mark[h]) / (self.now - self.marked)
                    self.measured[h] = max(self.rate / 100, 0.75 * self.measured[h] + 0.25 * sample)
            self.mark, self.marked = self.got[:], self.now
        for f in over:
            task = f.task
            task.flows -= 1
            if not task.flows:
                self.fetching[task.host].remove(task)
                self.dirty.add(task.host)
                self.rank(task.host)
                self.compute(task, task.job.reduces[task.number][1])

    def run(self):
        while self.events or self.flows:
            Network.share(self.flows, self.hosts, self.rate)
            first = min((self.now + f.left / f.rate for f in self.flows if f.rate > 1e-3), default=float("inf"))
            self.moved(min(first, self.events[0][0] if self.events else float("inf")))
            while self.events and self.events[0][0] <= self.now + 1e-9:
                _, _, kind, what = heapq.heappop(self.events)
                if kind == "job":
                    self.open.append(what)
                    self.opened(what)
                else:
                    self.ended(what)
            self.schedule()
        return [[t.job.number, t.stage, t.number, t.host] + [round(1000 * x) for x in t.times] for t in self.log]


if __name__ == "__main__":
    json.dump(World(sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)).run(), sys.stdout)
