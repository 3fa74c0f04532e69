#!/usr/bin/env python3
"""Runs the fuzz targets with libFuzzer, for as long as asked, and keeps the figures (docs/fuzzing.md).

The targets are tests that also run under `cargo test`; here they are compiled once more, in the profile `fuzz` and with
the compiler's coverage of edges and comparisons, which the pinned stable toolchain has. libFuzzer comes as source with
the crate `bolero-libfuzzer` and needs a C++ compiler.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "out/fuzz"
# What `cargo test` takes to build the targets of a package, and the tests that are targets.
PACKAGES = {
    "tidegate-core": (["--test", "fuzz"], []),
    "tidegate-filter": (["--lib"], ["fuzz::"]),
    "tidegate-native": (["--lib"], ["fuzz::"]),
    "tidegate-control": (["--lib"], ["fuzz::"]),
}
# What libFuzzer needs to see of the code: each edge counts, and the sides of each comparison are told.
FLAGS = [
    "--cfg",
    "fuzzing",
    "--cfg",
    "fuzzing_libfuzzer",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]
# Long inputs from the start on (a script of a few bytes does nothing), longest time that one may take in seconds, and
# most memory in MiB.
LIMITS = ["-len_control=0", "-timeout=60", "-rss_limit_mb=2048"]
# Longest input in bytes, and where less says as much.
MAX_BYTES = 2048
MAX_BYTES_OF = {"cluster_names": 256, "durations": 96, "header_pairs": 256, "header_values": 128, "patterns": 96}


def fail(text):
    sys.exit(f"fuzz: {text}")


def host():
    text = subprocess.run(["rustc", "-vV"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return re.search(r"^host: (.*)$", text, re.M)[1], text.splitlines()[0]


def build(package, triple):
    """The test binary of a package."""
    arguments, _ = PACKAGES[package]
    # With a target of its own, so that the flags reach neither build scripts nor macros.
    command = ["cargo", "test", "--locked", "--profile", "fuzz", "--target", triple, "--target-dir", "target/fuzz"]
    command += ["--package", package, *arguments, "--no-run", "--message-format", "json-render-diagnostics"]
    environment = {**os.environ, "RUSTFLAGS": " ".join(FLAGS)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        fail(f"{package} does not compile")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            # A copy, so that what is compiled meanwhile does not come in between.
            kept = OUT / "bin" / package
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.unlink(missing_ok=True)
            shutil.copy2(message["executable"], kept)
            return str(kept)
    return fail(f"{package} has no test binary")


def targets_of(package, binary):
    """Its targets by name: the binary lists them."""
    environment = {**os.environ, "CARGO_BOLERO_SELECT": "all"}
    command = [binary, *PACKAGES[package][1], "--nocapture", "--test-threads=1"]
    text = subprocess.run(command, cwd=ROOT / package.removeprefix("tidegate-"), env=environment, capture_output=True, text=True)
    found = {}
    for line in re.findall(r'^\{"__bolero_target".*\}$', text.stdout, re.M):
        told = json.loads(line)
        kept = pathlib.Path(told["work_dir"])
        found[kept.name] = {"package": package, "binary": binary, "test": told["test_name"], "kept": kept}
    return found


def asked(text, known):
    """The targets asked for, each with its seconds if it has some of its own."""
    if not text or text == "all":
        return {name: None for name in known}
    wanted = {}
    for part in text.split(","):
        name, _, seconds = part.partition("=")
        if name not in known:
            fail(f"there is no target {name}: {', '.join(known)}")
        wanted[name] = float(seconds) if seconds else None
    return wanted


class Run:
    """One target under libFuzzer."""

    def __init__(self, name, target, seconds, seed):
        self.name, self.target, self.seconds, self.seed = name, target, seconds, seed
        self.findings = OUT / "findings" / name
        self.corpus = OUT / "corpus" / name
        self.log = OUT / "log" / f"{name}.txt"

    def play(self):
        for folder in (self.findings, self.corpus, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        before = set(self.findings.iterdir())
        seeds = [self.target["kept"] / kind for kind in ("corpus", "crashes")]
        arguments = [str(folder) for folder in [self.corpus, *seeds] if folder.is_dir()]
        arguments += [f"-max_total_time={self.seconds:.0f}", f"-seed={self.seed}", "-print_final_stats=1", *LIMITS]
        arguments.append(f"-max_len={MAX_BYTES_OF.get(self.name, MAX_BYTES)}")
        arguments.append(f"-artifact_prefix={self.findings}/")
        environment = {**os.environ, "BOLERO_LIBFUZZER_ARGS": " ".join(arguments), "RUST_BACKTRACE": "0"}
        command = [self.target["binary"], "--exact", self.target["test"], "--nocapture", "--test-threads=1"]
        started = time.monotonic()
        with self.log.open("w") as log:
            folder = ROOT / self.target["package"].removeprefix("tidegate-")
            code = subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT).returncode
        took = time.monotonic() - started
        text = self.log.read_text(errors="replace")
        steps = re.findall(r"^#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)", text, re.M)
        last = [int(number) for number in steps[-1]] if steps else [0, 0, 0, 0]
        told = re.search(r"^stat::number_of_executed_units:\s*(\d+)", text, re.M)
        found = sorted(set(self.findings.iterdir()) - before)
        return {
            "target": self.name,
            "package": self.target["package"],
            "test": self.target["test"],
            "executions": int(told[1]) if told else last[0],
            "seconds": round(took, 1),
            "executions_per_second": round((int(told[1]) if told else last[0]) / max(took, 0.001)),
            "seed": self.seed,
            "edges": last[1],
            "features": last[2],
            "corpus": last[3],
            "findings": [str(path.relative_to(ROOT)) for path in found],
            # libFuzzer ends with an error only for a finding; any other one is no run at all.
            "passed": code == 0 and not found and bool(told),
        }


def tell(result, target):
    found = len(result["findings"])
    print(
        f"{result['target']:<20} {result['executions']:>12,} executions {result['seconds']:>8.1f} s"
        f" {result['executions_per_second']:>9,}/s {result['edges']:>7,} edges {found:>3} findings",
        flush=True,
    )
    if result["passed"]:
        return
    if not found:
        print(f"    it did not run to its end: see out/fuzz/log/{result['target']}.txt")
    for path in result["findings"]:
        crashes = target["kept"].relative_to(ROOT) / "crashes"
        print(f"    replay: mkdir -p {crashes} && cp {path} {crashes}/")
        print(f"            cargo test --locked -p {target['package']} {target['test']}")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60, help="for each target without seconds of its own")
    options.add_argument("--targets", default="all", help="names, with seconds of their own or not: a,b=600")
    options.add_argument("--packages", default=",".join(PACKAGES), help="whose targets: the others are not built")
    options.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="targets at a time")
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31))
    options.add_argument("--list", action="store_true", help="only list the targets")
    given = options.parse_args()
    if not shutil.which("c++"):
        fail("there is no C++ compiler, which libFuzzer needs")
    # What is compiled, whatever is committed meanwhile.
    commit = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    triple, compiler = host()
    known = {}
    for package in given.packages.split(","):
        known.update(targets_of(package, build(package, triple)))
    if given.list:
        for name, target in known.items():
            print(f"{name:<20} {target['package']:<18} {target['test']}")
        return 0
    wanted = asked(given.targets, known)
    print(f"fuzz: {len(wanted)} targets, {given.jobs} at a time, seed {given.seed}, {compiler}", flush=True)
    lock = threading.Lock()

    def play(item):
        name, seconds = item
        result = Run(name, known[name], seconds or given.seconds, given.seed).play()
        with lock:
            tell(result, known[name])
        return result

    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(play, wanted.items()))
    report = {
        "commit": commit.strip(),
        "command": " ".join(["ci/fuzz.py", *sys.argv[1:]]),
        "engine": "libFuzzer (bolero-libfuzzer), coverage-guided, profile fuzz",
        "compiler": compiler,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "started_with_seed": given.seed,
        "executions": sum(result["executions"] for result in results),
        "findings": sum(len(result["findings"]) for result in results),
        "targets": results,
    }
    path = OUT / time.strftime("run-%Y%m%dT%H%M%S.json")
    path.write_text(json.dumps(report, indent=2) + "\n")
    failed = sum(not result["passed"] for result in results)
    print(f"{report['executions']:,} executions, {report['findings']} findings; figures in {path.relative_to(ROOT)}")
    print(f"{len(results) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
