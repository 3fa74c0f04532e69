#!/usr/bin/env python3
"""Tests the search for the capacity as a user runs it against staging: ci/k6_capacity_test.py K6

Everything about the staging is in the file that ENVIRONMENT names: address, method, path, headers, body, and two short steps. The
staging is a server here. It answers only what the file describes, so that a setting that gets lost is an error.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "loadtests/k6/capacity.js"
EXAMPLE = ROOT / "loadtests/k6/environment.example.json"
RATES = [20, 40]
TOKEN = "let-me-in"
# Bounds a machine that is very busy.
PATIENCE_SECONDS = 120
TRIES = 3


def server(settings, seen):
    class Staging(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):  # noqa: N802: the name is the library's
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            told = {name: self.headers.get(name) for name in settings["HEADERS"]}
            found = (self.path, told, json.loads(body), self.headers.get("authorization"))
            expected = (settings["REQUEST_PATH"], settings["HEADERS"], settings["BODY"], f"Bearer {TOKEN}")
            seen.append("" if found == expected else f"found {found}, expected {expected}")
            self.send_response(200 if found == expected else 400)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    ThreadingHTTPServer.daemon_threads = True
    return ThreadingHTTPServer(("127.0.0.1", 0), Staging)


def play(k6, folder, environment, **more):
    file = folder / "staging.json"
    file.write_text(json.dumps(environment))
    # Nothing of this shell's: a setting of it would win over the file.
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "ENVIRONMENT": str(file), **more}
    command = [k6, "run", "--quiet", "--no-usage-report", str(SCRIPT)]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def capacity_is_found(k6, folder):
    environment = json.loads(EXAMPLE.read_text())
    settings, seen = environment["settings"], []
    staging = server(settings, seen)
    threading.Thread(target=staging.serve_forever, daemon=True).start()
    report = folder / "capacity.json"
    (folder / "token").write_text(f"{TOKEN}\n")
    settings |= {
        "BASE_URL": f"http://127.0.0.1:{staging.server_address[1]}", "CAPACITY_FILE": str(report), "SLO_MS": 2000,
        "BEARER_TOKEN_FILE": str(folder / "token"),
        "FROM_RATE": RATES[0], "TO_RATE": RATES[1], "STEP_FACTOR": 2, "STEP_SECONDS": 2,
    }
    # A busy machine may delay k6, which then does not count that step.
    for _ in range(TRIES):
        done = play(k6, folder, environment)
        assert done.returncode == 0, done.stdout + done.stderr
        if "k6 fell behind" not in done.stdout:
            break
    staging.shutdown()
    wrong = [fault for fault in seen if fault]
    assert seen and not wrong, f"{len(wrong)} of {len(seen)} requests are not as the file says: {wrong[:1]}"
    told = json.loads(report.read_text())
    assert [step["rate"] for step in told["steps"]] == RATES, told
    assert all(step["share"] == 1 for step in told["steps"]), told
    # The server can serve all of it, so the greatest rate is what is found.
    assert told["inObjective"] == RATES[1] <= told["capacity"] <= RATES[1] + 1, told
    assert f"CAPACITY is {told['capacity']} or more: go on with a greater TO_RATE" in done.stdout, done.stdout


def unknown_words_are_refused(k6, folder):
    done = play(k6, folder, {"setting": {"SLO_MS": 250}}, BASE_URL="http://127.0.0.1:1")
    assert done.returncode != 0, done.stdout
    assert "found setting, expected settings and thresholds" in done.stdout + done.stderr, done.stdout + done.stderr


def the_address_is_asked_for(k6, folder):
    done = play(k6, folder, {"settings": {}})
    assert done.returncode != 0, done.stdout
    assert "BASE_URL: found nothing" in done.stdout + done.stderr, done.stdout + done.stderr


def main():
    k6 = str(Path(sys.argv[1]).resolve())
    tests = [capacity_is_found, unknown_words_are_refused, the_address_is_asked_for]
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="tidegate-k6-") as folder:
            test(k6, Path(folder))
        print(f"ok     {test.__name__.replace('_', ' ')}", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
