"""Draws services that are never overloaded, of any shape: the set `drawn` of ci/healthy.py.

The other sets vary one thing. Here each service draws everything: how long requests take and how many come, the objective, callers, bodies,
failures and endpoints. A seed and a number give the same service on every machine.
"""

import math
import random

END = 90


def duration(seconds):
    return f'"{max(1, round(seconds * 1e6))}us"'


def times(seconds, sigma):
    """A distribution of this mean."""
    if sigma == 0:
        return f'{{ kind = "constant", mean = {duration(seconds)} }}'
    return f'{{ kind = "lognormal", mean = {duration(seconds)}, sigma = {sigma} }}'


class Drawn:
    """One service, its callers and its objective."""

    def __init__(self, seed, number):
        self.rng = random.Random(f"{seed}-{number}")
        self.name = f"drawn-{seed}-{number:04}"
        self.behaviour, self.clients, self.upstream = [], [], []
        self.draw_work()
        self.draw_demand()
        self.objective = max(0.003, self.slow * self.pick({0.7: 1, 1.1: 2, 1.5: 3, 3: 3, 8: 1}))
        self.until = "headers"
        self.draw_body()
        self.draw_change()
        self.draw_load()
        self.draw_callers()
        self.draw_failures()
        self.draw_endpoints()

    def pick(self, weights):
        """A key, drawn by its weight."""
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def between(self, low, high):
        """Evenly on a logarithmic scale."""
        return math.exp(self.rng.uniform(math.log(low), math.log(high)))

    def draw_work(self):
        """How long requests take: their mean, and what the slow ones take."""
        self.paths, self.service, self.sigma = {}, None, 0
        kind = self.pick({"alike": 1, "varied": 5, "two kinds": 1.5, "paths": 1.5})
        seconds = self.between(0.002, 2 if kind in ("alike", "varied") else 0.1)
        self.mean = self.slow = seconds
        if kind == "two kinds":
            share, factor = self.rng.choice([0.003, 0.03, 0.3]), self.rng.choice([5, 20, 80])
            self.mean = seconds * (1 - share + share * factor)
            self.slow = seconds * (factor if share > 0.01 else 1)
            self.behaviour.append(
                f'service = {{ kind = "bimodal", fast = {duration(seconds)}, slow = {duration(seconds * factor)}, slow_share = {share} }}'
            )
        elif kind == "paths":
            factors = [self.between(1, 50) for _ in range(self.rng.randint(2, 4))]
            weights = [self.rng.random() + 0.02 for _ in factors]
            self.paths = {f"/p{i}": weight / sum(weights) for i, weight in enumerate(weights)}
            listed = ", ".join(f'"/p{i}" = {times(seconds * factor, 0.3)}' for i, factor in enumerate(factors))
            self.behaviour.append(f"paths = {{ {listed} }}")
            self.mean = seconds * sum(f * w for f, w in zip(factors, self.paths.values()))
            self.slow = seconds * max(factors) * 1.8
        else:
            self.sigma = self.rng.choice([0.3, 0.6, 1.0, 1.5]) if kind == "varied" else 0
            self.slow = seconds * math.exp(2 * self.sigma - self.sigma**2 / 2)
            self.service = times(seconds, self.sigma)
            self.behaviour.append(f"service = {self.service}")

    def draw_demand(self):
        """How many requests come, and through how many proxies."""
        self.proxies = self.pick({1: 5, 2: 1, 5: 2, 20: 1})
        in_flight = self.between(0.05, 40) * self.proxies
        self.rps = min(400, max(0.2, in_flight / self.mean))
        self.slots = self.rps * self.mean * 4 + 12

    def draw_body(self):
        """The body of the responses; the objective may include it."""
        if self.rng.random() > 0.25:
            return
        seconds, holds = self.between(0.01, 20), self.rng.choice(["true", "false"])
        self.until = self.pick({"headers": 5, "end": 2, "first-byte": 1})
        body = times(seconds, self.rng.choice([0, 0.5, 1.0]))
        self.behaviour.append(f"body = {{ duration = {body}, holds_slot = {holds} }}")
        self.slots += self.rps * seconds * 4
        if self.until == "end":
            self.objective += seconds * 3
        if self.rng.random() < 0.25:
            self.behaviour.append('headers = "at-once"')

    def draw_change(self):
        """The service becomes slower or faster for a while, within its objective."""
        factor, every = self.pick({1: 7, 0.4: 1, 1.5: 1, 2.5: 1}), self.rng.choice([3, 15, 40])
        if factor == 1 or self.service is None:
            return
        self.objective *= max(1, factor)
        self.slots *= max(1, factor)
        steps = enumerate(range(every, END, every))
        changes = [f'{{ at = "{at}s", service = {times(self.mean * (1 if i % 2 else factor), self.sigma)} }}' for i, at in steps]
        self.upstream.append(f"timeline = [{', '.join(changes)}]")

    def draw_load(self):
        """The rate over time."""
        rng, shape = self.rng, self.pick({"steady": 3, "day": 2, "on and off": 1.5, "steps": 2, "packs": 2, "closed": 1.5, "grows": 1})
        points, self.pack = [(0, 1)], None
        if shape == "day":
            points = [(at, rng.choice([0.1, 0.5, 1])) for at in range(0, END, 12)]
        elif shape == "on and off":
            length = rng.choice([1, 5, 20])
            points = [(at, 0.01 if i % 2 else 1) for i, at in enumerate(range(0, END, length))]
        elif shape == "steps":
            low = 1 / rng.choice([3, 10, 40])
            points = [(0, low), (30, 1), (50, low), (70, 1)]
        elif shape == "grows":
            points = [(0, 0.02), (END - 5, 1)]
        elif shape == "packs":
            points, every = [(0, 0.3)], rng.choice([2, 5, 20])
            size = min(rng.choice([5, 30, 200]), max(2, 600 * every // self.proxies))
            self.pack = (size, every, rng.choice([0.02, 0.2, 1]))
            self.slots = max(self.slots, size * self.proxies * 1.3 + 20)
        if shape == "closed":
            callers = min(300, max(1, round(self.rps * self.mean * 2)))
            think = times(max(0.001, callers / self.rps - self.mean), 0.8)
            self.slots = max(self.slots, callers * 2)
            load = f'closed_loop = {{ callers = [{{ at = "0s", count = {callers} }}], think = {think}, after_failure = {times(max(0.01, self.mean), 0.5)} }}'
        else:
            ramp = ", ramp = true" if shape in ("day", "grows") else ""
            listed = [f'{{ at = "{at}s", rps = {max(0.05, self.rps * x):.4f}{ramp if at else ""} }}' for at, x in points]
            load = f"load = [{', '.join(listed)}]"
        self.clients = ["[[clients]]", load]

    def draw_callers(self):
        """What callers do: how long they wait, uploads, retries."""
        patience = {"long": max(10, self.slow * 5, self.objective * 3), "objective": self.objective}
        self.clients.append(f"deadline = {duration(patience[self.pick({'long': 6, 'objective': 1})])}")
        if self.paths:
            shares = ", ".join(f'"{path}" = {share:.9f}' for path, share in self.paths.items())
            self.clients.append(f"paths = {{ {shares} }}")
        if self.rng.random() < 0.12:
            upload = times(self.between(0.01, 3), 0.7)
            self.clients.append(f"upload = {{ duration = {upload}, stalled = {self.rng.choice([0, 0, 0.02])} }}")
        if self.rng.random() < 0.2:
            self.clients.append(f'retries = {{ max = {self.rng.randint(1, 3)}, backoff = "{self.rng.choice([25, 100])}ms" }}')

    def draw_failures(self):
        """Requests that fail by chance, and a path that always fails."""
        share = self.pick({0: 6, 0.01: 1.5, 0.05: 1.5, 0.2: 1, 0.5: 0.6})
        if share:
            self.behaviour.append(f"errors = {{ share = {share}, status = {self.rng.choice([500, 502, 503])} }}")
        if self.rng.random() < 0.12:
            rate = max(0.2, self.rps * self.rng.choice([0.02, 0.2, 1]))
            self.behaviour.append(f'failing = {{ "/broken" = {self.rng.choice([404, 500, 503])} }}')
            self.broken = ["[[clients]]", f'load = [{{ at = "{self.rng.choice([0, 30])}s", rps = {rate:.4f} }}]', 'paths = { "/broken" = 1.0 }']
        else:
            self.broken = []

    def draw_endpoints(self):
        """How many endpoints there are, and whether one of them is slow."""
        count = self.pick({1: 5, 2: 1, 8: 1})
        self.upstream.append(f'balancing = "{self.rng.choice(["round-robin", "random", "least-request"])}"')
        self.exceptions = ""
        if count > 1:
            self.slots = self.slots * 1.6 / count + 6
            if self.service and self.rng.random() < 0.4:
                slow = times(self.mean * self.rng.choice([2, 5, 20]), 0.3)
                self.exceptions = f'[[upstreams.exceptions]]\nendpoint = 0\ntimeline = [{{ at = "20s", service = {slow} }}]\n'
                self.slots *= 20
        self.slots = min(20_000, math.ceil(self.slots))
        self.behaviour += [f"endpoints = {count}", f"slots = {self.slots}"]
        if self.pack:
            size, every, length = self.pack
            x = size * self.proxies / length * self.mean / (self.slots * count)
            self.clients.insert(2, f'bursts = {{ every = "{every}s", length = "{round(length * 1000)}ms", x = {x:.6f} }}')

    def story(self):
        """The arguments of `write` in ci/healthy.py."""
        clients = "\n".join(self.clients + [""] + self.broken) + "\n"
        upstream = ["[[upstreams]]", 'name = "main"', *self.upstream, "[upstreams.behaviour]", *self.behaviour]
        service = "\n".join(upstream) + "\n" + self.exceptions
        return self.name, self.objective * 1000, self.proxies, clients, service, self.until


def services(seed, count):
    for number in range(count):
        yield Drawn(seed, number).story()
