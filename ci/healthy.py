#!/usr/bin/env python3
"""Plays 1,374 services that are never overloaded, and shows how many of their requests are shed: ci/healthy.py SIM [SET...]

SIM is the simulator's program. A set is a shape of traffic or of service, below; by default all are played. The stories and
their results are left in out/sim-healthy. Callers wait for ten seconds or longer, so that each request is answered in time or late.
"""

import itertools
import json
import math
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import drawn_services

OUT = Path("out/sim-healthy")
FIGURE = re.compile(r"^ +(score|shed_ratio) +([-\d.]+)", re.M)


def lognormal(mean, sigma):
    return f'{{ kind = "lognormal", mean = "{mean}ms", sigma = {sigma} }}'


def constant(mean):
    return f'{{ kind = "constant", mean = "{mean}ms" }}'


def load(*steps):
    """A client whose rate changes at these seconds."""
    points = ", ".join(f'{{ at = "{at}s", rps = {float(rps)} }}' for at, rps in steps)
    return f'[[clients]]\ndeadline = "10s"\nload = [{points}]\n'


def upstream(slots, service, timeline=(), extra="", balancing="round-robin"):
    changes = ", ".join(f'{{ at = "{at}s", service = {change} }}' for at, change in timeline)
    service = f"service = {service}\n" if service else ""
    return (
        f'[[upstreams]]\nname = "main"\nbalancing = "{balancing}"\ntimeline = [{changes}]\n'
        f"[upstreams.behaviour]\nslots = {int(slots)}\n{service}{extra}"
    )


def slower():
    """A service takes some times as long from one moment on, without a queue and within its objective."""
    grid = itertools.product([5, 20, 80, 400], [10, 60, 250], [2.2, 4], [50, 70, 85], [False, True])
    for rps, mean, factor, percent, varies in grid:
        after = mean * factor
        dist = (lambda ms: lognormal(ms, 0.3)) if varies else constant
        service = upstream(max(64, rps * after / 200), dist(mean), [(30, dist(after))])
        name = f"{rps}-a-second-of-{mean}-ms-x{factor}-at-{percent}-percent-{'varied' if varies else 'alike'}"
        yield name, after * 100 / percent, 1, load((0, rps)), service


def drift():
    """A service becomes three times as slow and fast again, little by little."""
    for rps, mean, proxies, times in itertools.product([10, 50, 300], [20, 100], [1, 4], [3, 8]):
        steps = [round(mean * (1 + 0.25 * min(step, 16 - step))) for step in range(17)]
        timeline = [(10 + 4 * step, lognormal(ms, 0.3)) for step, ms in enumerate(steps)]
        service = upstream(max(32, rps * mean * 6 / 1000), lognormal(mean, 0.3), timeline)
        yield f"{rps}-a-second-of-{mean}-ms-in-{times}x-{proxies}-proxies", mean * times, proxies, load((0, rps)), service


def pauses():
    """A service stands still for a moment now and then."""
    grid = itertools.product([20, 200], [10, 100], [2, 15], [50, 400, 1200], [1, 5])
    for rps, mean, every, length, proxies in grid:
        pause = f'pauses = {{ every = "{every}s", length = "{length}ms" }}\n'
        service = upstream(max(32, rps * mean * 3 / 1000), lognormal(mean, 0.4), extra=pause)
        name = f"{rps}-a-second-of-{mean}-ms-{length}-ms-in-{every}-s-{proxies}-proxies"
        yield name, max(mean * 4, 300), proxies, load((0, rps)), service


def packs():
    """Requests come in packs."""
    grid = itertools.product([5, 40], [20, 150], [1000, 10000], [20, 200], [200, 1000], [1, 4])
    for rps, mean, every, length, pack, proxies in grid:
        slots = int(max(64, pack * proxies * mean / 400))
        share = pack * proxies * mean / 1000 / slots
        bursts = f'bursts = {{ every = "{every}ms", length = "{length}ms", x = {share:.4f} }}\n'
        service = upstream(slots, lognormal(mean, 0.4))
        name = f"{rps}-a-second-of-{mean}-ms-{pack}-for-{length}-in-{every}-ms-{proxies}-proxies"
        yield name, mean * 6, proxies, load((0, rps * proxies)) + bursts, service


def packs_apart():
    """Packs come seconds apart, hardly any other requests do, and the objective leaves them one latency to wait."""
    grid = itertools.product([40, 300], [60, 400], [5, 15], [0.5, 10], [20, 300], [1, 5])
    for pack, mean, every, rps, length, proxies in grid:
        slots = int(max(64, pack * proxies * 1.3 + rps * proxies * mean / 500))
        share = pack * proxies * mean / length / slots
        bursts = f'bursts = {{ every = "{every}s", length = "{length}ms", x = {share:.4f} }}\n'
        service = upstream(slots, lognormal(mean, 0.4))
        name = f"{rps}-a-second-of-{mean}-ms-{pack}-for-{length}-in-{every}-s-{proxies}-proxies"
        yield name, mean * 2, proxies, load((0, rps * proxies)) + bursts, service


def failing():
    """A path that always fails is requested as often as all others or more often, and these become fewer for half a minute."""
    grid = itertools.product([2, 10], [1, 4, 20], [0, 30], [1, 0.1], [1, 4])
    for rps, times, since, left, proxies in grid:
        good = load((0, rps * proxies), (40, rps * proxies * left), (70, rps * proxies))
        crashing = load((since, rps * times * proxies)) + 'paths = { "/crash" = 1.0 }\n'
        service = upstream(200, lognormal(40, 0.5), extra='failing = { "/crash" = 500 }\n')
        name = f"{rps}-a-second-and-{times}x-that-fail-from-{since}-s-{left}-left-{proxies}-proxies"
        yield name, 300, proxies, good + crashing, service


def steps():
    """The rate of requests goes up to some times as many, and down again, within the capacity."""
    for low, times, mean, sigma, proxies in itertools.product([1, 10, 50], [10, 40], [10, 80, 400], [0.2, 1.0], [1, 5]):
        high = low * times
        service = upstream(max(16, high * mean / 500), lognormal(mean, sigma))
        client = load((0, low), (30, high), (50, low), (70, high))
        name = f"{low}-a-second-of-{mean}-ms-x{times}-sigma-{sigma}-{proxies}-proxies"
        yield name, mean * (8 if sigma > 0.5 else 4), proxies, client, service


def mixes():
    """The share of slow requests changes."""
    grid = itertools.product([20, 100, 400], [10, 40], [0.02, 0.1], [0.3, 0.6], [1, 5])
    for rps, times, few, many, proxies in grid:
        slow = 5 * times
        slots = max(32, rps * ((1 - many) * 5 + many * slow) / 400)
        shares = [(0, few), (30, many), (60, few)]
        fast_ones = load(*((at, rps * (1 - share)) for at, share in shares)) + 'paths = { "/fast" = 1.0 }\n'
        slow_ones = load(*((at, rps * share) for at, share in shares)) + 'paths = { "/slow" = 1.0 }\n'
        paths = f'paths = {{ "/fast" = {lognormal(5, 0.3)}, "/slow" = {lognormal(slow, 0.3)} }}\n'
        name = f"{rps}-a-second-{few}-to-{many}-of-{slow}-ms-{proxies}-proxies"
        yield name, slow * 3, proxies, fast_ones + slow_ones, upstream(slots, None, extra=paths)


def one_slow():
    """One endpoint of several becomes slow."""
    grid = itertools.product([2, 5], [3, 10, 40], [5, 40, 300], [10, 100], ["round-robin", "least-request"], [1, 4])
    for endpoints, times, rps, mean, balancing, proxies in grid:
        slots = math.ceil(rps * proxies * mean * times / endpoints / 400) + 8
        slow = f'{{ at = "30s", service = {lognormal(mean * times, 0.3)} }}'
        exception = f"[[upstreams.exceptions]]\nendpoint = 0\ntimeline = [{slow}]\n"
        extra = f"endpoints = {endpoints}\n{exception}"
        service = upstream(slots, lognormal(mean, 0.3), extra=extra, balancing=balancing)
        name = f"{rps}-a-second-of-{mean}-ms-x{times}-one-of-{endpoints}-{balancing}-{proxies}-proxies"
        yield name, mean * 4, proxies, load((0, rps * proxies)), service


def long_polls():
    """Some requests wait for news, for seconds, beside others that are answered at once."""
    grid = itertools.product([2, 10, 30], [0.1, 0.5, 0.8], [10, 200], [5, 40], [2, 8], [1, 5])
    for seconds, share, mean, rps, times, proxies in grid:
        total = rps * proxies
        paths = f'paths = {{ "/api" = {lognormal(mean, 0.4)}, "/poll" = {lognormal(seconds * 1000, 0.5)} }}\n'
        client = (
            f'[[clients]]\ndeadline = "{seconds * 8}s"\nload = [{{ at = "0s", rps = {float(total)} }}]\n'
            f'paths = {{ "/api" = {1 - share:.1f}, "/poll" = {share} }}\n'
        )
        service = upstream(total * share * seconds * 3 + 30, None, extra=paths)
        name = f"{rps}-a-second-of-{mean}-ms-{share}-for-{seconds}-s-in-{times}x-{proxies}-proxies"
        yield name, mean * times, proxies, client, service


def breaks():
    """Requests stop for a moment now and then, and some of them take seconds: ten times the objective and more."""
    grid = itertools.product([50, 200, 800], [0.05, 0.2, 0.5], [1500, 3000, 8000], range(2))
    for rps, share, slow, number in grid:
        chance = random.Random(f"{rps} {share} {slow} {number}")
        points, at = [], 0
        while at < 90:
            stop = at + chance.uniform(0.5, 6)
            points += [(round(at, 2), rps), (round(stop, 2), 0)]
            at = stop + chance.choice([0.3, 0.8, 1.5, 3])
        extra = f'delay = {{ share = {share}, by = "{slow}ms" }}\n'
        service = upstream(rps * share * slow / 500 + rps / 10 + 50, lognormal(30, 0.4), extra=extra)
        client = load(*points).replace('"10s"', '"20s"')
        yield f"{rps}-a-second-{share}-of-them-{slow}-ms-{number}", 300, 1, client, service


def few():
    """Few requests are in flight, and the objective leaves them little time to wait."""
    grid = itertools.product([1, 2, 4, 8, 16], [50, 300, 1500], [1.5, 2.5], [0, 0.6], [1, 4])
    for mean_in_flight, mean, times, sigma, proxies in grid:
        slots = math.ceil(mean_in_flight * proxies / 0.3)
        service = upstream(slots, lognormal(mean, sigma) if sigma else constant(mean))
        name = f"{mean_in_flight}-in-flight-for-{mean}-ms-in-{times}x-sigma-{sigma}-{proxies}-proxies"
        yield name, mean * times, proxies, load((0, mean_in_flight * proxies * 1000 / mean)), service


def drawn():
    """Everything is drawn: these are the first 400 services of a seed."""
    return drawn_services.services(1, 400)


SETS = {shape.__name__: shape for shape in (slower, drift, pauses, packs, packs_apart, failing, steps, mixes, one_slow, long_polls, breaks, few, drawn)}


def write(folder, name, objective, proxies, clients, service, until="headers"):
    """A story as a file."""
    name = name.replace(".", "_")
    path = folder / f"{name}.toml"
    path.write_text(
        f'name = "{name}"\ntitle = "{name}"\nprose = "Nothing is overloaded."\nseed = 7\nduration = "90s"\n'
        f'warmup = "5s"\nproxies = {proxies}\n\n[slo]\nlatency = "{round(objective, 3)}ms"\nuntil = "{until}"\n\n{clients}\n{service}\n'
        "[expect]\nscore = { min = 0.0 }\n"
    )
    return path


def play(sim, path):
    """The share of good answers and of requests that were shed."""
    run = subprocess.run([sim, "run", path], capture_output=True, text=True, check=False)
    found = dict(FIGURE.findall(run.stdout))
    if "shed_ratio" not in found:
        raise SystemExit(f"healthy.py: error: {path}: no figures: {run.stderr.strip()}")
    return float(found["score"]), float(found["shed_ratio"])


def main(sim, names):
    unknown = [name for name in names if name not in SETS]
    if unknown:
        raise SystemExit(f"healthy.py: error: no set {', '.join(unknown)}; there are {', '.join(SETS)}")
    results = {}
    print("| services | number | shed, mean | shed, most | more than 5 % | score, mean | score, least |\n|---|---|---|---|---|---|---|")
    for name in names or SETS:
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        paths = [write(folder, *story) for story in SETS[name]()]
        with ThreadPoolExecutor(2) as threads:
            played = list(threads.map(lambda path: play(sim, path), paths))
        results[name] = {path.stem: {"score": score, "shed": shed} for path, (score, shed) in zip(paths, played)}
        scores, sheds = zip(*played)
        print(
            f"| {name} | {len(sheds)} | {sum(sheds) / len(sheds):.4f} | {max(sheds):.3f} | {sum(shed > 0.05 for shed in sheds)}"
            f" | {sum(scores) / len(scores):.4f} | {min(scores):.3f} |",
            flush=True,
        )
    (OUT / "healthy.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.splitlines()[0])
    main(sys.argv[1], sys.argv[2:])
