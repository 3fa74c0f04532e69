#!/usr/bin/env python3
"""Tests the search for the capacity and the settings of the scenarios as a user runs them against staging: ci/k6_capacity_test.py K6

Everything about the staging is in the file that ENVIRONMENT names: address, method, path, headers, body, and two short steps. The
staging is a server here. It answers only what the file describes, so that a setting that gets lost is an error.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "loadtests/k6"
SCRIPT = FOLDER / "capacity.js"
# k6's exit code when a threshold was missed.
MISSED = 99
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


def k6_says(k6, folder, words, script, **variables):
    """What k6 says of a script from an empty environment."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "PWD": str(folder), **variables}
    command = [k6, *words, str(FOLDER / script)]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def inspected(k6, folder, script, **variables):
    """The options of a script."""
    done = k6_says(k6, folder, ["inspect", "--include-system-env-vars"], script, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


class Recorder:
    """A server that notes requests, and answers all with one status."""

    def __init__(self, status):
        self.seen = []
        seen = self.seen

        class Staging(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                seen.append((self.command, body.decode(), self.headers.get("authorization")))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            do_GET = do_POST = answer  # noqa: N815: the names are the library's

            def log_message(self, *_):
                pass

        ThreadingHTTPServer.daemon_threads = True
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Staging)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def a_user_and_the_file_of_a_body_are_sent(k6, folder):
    (folder / "order.json").write_text('{"sku": "A-1"}')
    step = {"FROM_RATE": "5", "TO_RATE": "5", "STEP_SECONDS": "1"}
    with Recorder(200) as staging:
        basic = {"BASIC_USER": "ann", "BASIC_PASSWORD": "secret", "METHOD": "POST", "BODY_FILE": "order.json"}
        done = k6_says(k6, folder, ["run", "--quiet", "--no-usage-report"], "capacity.js", BASE_URL=staging.url, **basic, **step)
        assert done.returncode == 0, done.stdout + done.stderr
        expected = ("POST", '{"sku": "A-1"}', "Basic " + base64.b64encode(b"ann:secret").decode())
        assert set(staging.seen) == {expected}, staging.seen[:3]


def files_are_seen_from_where_k6_was_started(k6, folder):
    (folder / "token").write_text(TOKEN)
    (folder / "here.json").write_text(json.dumps({"settings": {"BASE_URL": "http://127.0.0.1:1", "CAPACITY": 40}}))
    for name in ("here.json", str(folder / "here.json")):
        options = inspected(k6, folder, "smoke.js", ENVIRONMENT=name, BEARER_TOKEN_FILE="token")
        assert options["scenarios"]["steady"]["rate"] == 20, options["scenarios"]
    done = k6_says(k6, folder, ["inspect", "--include-system-env-vars"], "smoke.js", BASE_URL="http://127.0.0.1:1", BODY_FILE="no-such-file")
    assert done.returncode != 0 and str(folder / "no-such-file") in done.stdout + done.stderr, done.stdout + done.stderr


def any_certificate_is_accepted_only_if_the_setting_says_so(k6, folder):
    address = {"BASE_URL": "https://127.0.0.1:1"}
    assert inspected(k6, folder, "smoke.js", INSECURE="true", **address)["insecureSkipTLSVerify"] is True
    assert not inspected(k6, folder, "smoke.js", **address)["insecureSkipTLSVerify"]


def users_run_alone(k6, folder):
    options = inspected(k6, folder, "users.js", BASE_URL="http://127.0.0.1:1", USERS="4")
    assert options["scenarios"]["users"]["stages"][0]["target"] == 4, options["scenarios"]
    done = k6_says(k6, folder, ["inspect", "--include-system-env-vars"], "users.js")
    assert done.returncode != 0 and "BASE_URL: found nothing" in done.stdout + done.stderr, done.stdout + done.stderr


def a_missed_threshold_is_the_exit_code(k6, folder):
    with Recorder(500) as staging:
        done = k6_says(k6, folder, ["run", "--quiet", "--no-usage-report"], "smoke.js", BASE_URL=staging.url, CAPACITY="20")
        assert done.returncode == MISSED, f"{done.returncode}: {done.stdout}{done.stderr}"
        assert staging.seen, "no request came"


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
    tests = [
        capacity_is_found, unknown_words_are_refused, the_address_is_asked_for, a_user_and_the_file_of_a_body_are_sent,
        files_are_seen_from_where_k6_was_started, any_certificate_is_accepted_only_if_the_setting_says_so, users_run_alone,
        a_missed_threshold_is_the_exit_code,
    ]
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="tidegate-k6-") as folder:
            test(k6, Path(folder))
        print(f"ok     {test.__name__.replace('_', ' ')}", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
