#!/usr/bin/env python3
"""Works out what the trip test of core/src/breaker/evidence.rs promises: docs/laws/evidence.md quotes it.

The constants are read from thresholds.rs and judge/rates.rs beside it. Silence is not part of the figures: it makes trips
rarer. From zero the sum either falls back to zero or reaches the threshold: one
excursion. Excursions are alike and independent while the failure rate holds, so the mean number of outcomes until a
trip is (mean length of an excursion) / (share of excursions that trip). Both are exact sums over the paths of one
excursion. Only the last table, the start of a partial failure, is drawn at random, with a fixed seed.
"""

import math
import random
import re
from pathlib import Path

BREAKER = Path(__file__).resolve().parent.parent / "core/src/breaker"
SOURCES = "".join((BREAKER / name).read_text() for name in ("thresholds.rs", "judge/rates.rs"))


def constant(name):
    found = re.search(rf"^const {name}: f64 = ([0-9_.]+);", SOURCES, re.MULTILINE)
    if not found:
        raise SystemExit(f"evidence.py: error: {name} is neither in thresholds.rs nor in judge/rates.rs")
    return float(found[1].replace("_", ""))


DEAD = constant("DEAD_FAILURE_RATE")
LEAST, MARGIN, MOST = (constant(name) for name in ("MIN_USUAL_FAILURE_RATE", "USUAL_MARGIN", "MAX_USUAL_OF_TRIP_RATIO"))
DAY, MEMORY = constant("SECONDS_PER_DAY"), constant("RATE_MEMORY")
TRIP_RATIO = 0.5


def thresholds(learned, rate):
    usual = min(max(min(learned * MARGIN, max(TRIP_RATIO * MOST, LEAST)), LEAST), DEAD - 0.05)
    return math.log(DEAD / usual), math.log((1 - DEAD) / (1 - usual)), math.log(max(rate, 1) * DAY)


def until_trip(failing, per_failure, per_success, trip):
    """Mean outcomes until a trip when a share `failing` fails."""
    # One excursion: paths by (failures, successes), the outcome that lifts the sum off zero included.
    length, trips, paths = 1.0, 0.0, {(1, 0): failing}
    while sum(paths.values()) > 1e-22 * max(trips, 1e-30):
        after = {}
        for (failures, successes), share in paths.items():
            length += share
            for step, chance in (((failures + 1, successes), failing), ((failures, successes + 1), 1 - failing)):
                score = step[0] * per_failure + step[1] * per_success
                if chance == 0 or score <= 0:
                    continue
                if step[0] > failures and score >= trip:
                    trips += share * chance
                else:
                    after[step] = after.get(step, 0) + share * chance
        paths = after
    return length / trips if trips else math.inf


def trips_at_the_start(failing, rate, seconds, runs):
    """Share of partial failures that trip before the learned failure rate has followed."""
    rng, tick = random.Random(1), rate // 10
    tripped = 0
    for _ in range(runs):
        learned = score = 0.0
        for _ in range(seconds * 10):
            up, down, trip = thresholds(learned, rate)
            failed, highest = 0, 0.0
            for _ in range(tick):
                if rng.random() < failing:
                    failed, score = failed + 1, score + up
                else:
                    score = max(score + down, 0.0)
                highest = max(highest, score)
            if highest >= trip:
                tripped += 1
                break
            learned += (failed / tick - learned) * tick / (tick + MEMORY)
    return tripped / runs


def in_words(outcomes, rate):
    days = outcomes / rate / DAY
    return f"{days:.3g} days" if days >= 1 else f"{outcomes:.3g} outcomes"


def main():
    print("rate/s  learned  per failure  per success  trip  in a row  break-even")
    for learned, rate in [(0, 10), (0, 300), (0, 100_000), (0.1, 300), (0.3, 300)]:
        up, down, trip = thresholds(learned, rate)
        print(f"{rate:6} {learned:8} {up:12.3f} {down:12.3f} {trip:5.2f} {math.ceil(trip / up):9} {-down / (up - down):11.3f}")
    for learned, rate in [(0, 10), (0, 300), (0.1, 300), (0.3, 300)]:
        print(f"\nlearned {learned}, {rate} outcomes a second: mean until a trip")
        for failing in (0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6, 0.8, 0.95, 1.0):
            print(f"  {failing:4}  {in_words(until_trip(failing, *thresholds(learned, rate)), rate)}")
    print("\na partial failure begins, learned 0, 300 outcomes a second: share that trips within 10 s")
    for failing in (0.1, 0.2, 0.3, 0.4, 0.45):
        print(f"  {failing:4}  {trips_at_the_start(failing, 300, 10, 1000):.3f}")


if __name__ == "__main__":
    main()
