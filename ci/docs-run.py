#!/usr/bin/env python3
"""Runs the commands that stand in documents: ci/docs-run.py [PAGE...]

A page that shows a command which fails is worse than none. A comment before a fenced block says what to do with it:

    <!-- file: NAME -->    it is this file, in the page's own temporary folder
    <!-- run -->           it is run there with bash, and must succeed
    <!-- start: URL -->    it is started there, and goes on once the URL answers 200; it is ended with the page

What a page needs but does not show stands in the comment itself, in lines between `<!-- run` and `-->`.

Besides, examples/migration/try is run, which needs no cluster, and must print what the page of the example shows.

Blocks are taken in their order. `tidegate` and `envoy` are those that were built here. Ports that a page names (in URLs,
port_value) and the path /etc/envoy/tidegate.wasm are replaced, so that pages neither meet each other nor what runs here.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where cargo builds; a relative one is seen from the root, as make runs there.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or "target")
MARK = r"^<!-- (file|run|start)(?:: (\S+))?"
BLOCK = re.compile(MARK + r"(?: -->\n```[a-z]*\n(.*?)^```$|\n(.*?)^-->$)", re.DOTALL | re.MULTILINE)
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d{4,5}|(?<=port_value: )\d{4,5}")
MODULE = "/etc/envoy/tidegate.wasm"
# Listeners that a command has without saying so, and the option that moves them.
DEFAULTS = {"18000": "TIDEGATE_XDS_LISTEN", "18080": "TIDEGATE_HTTP_LISTEN", "18081": "TIDEGATE_HEALTH_LISTEN"}
# Bounds a machine that is very busy.
PATIENCE_SECONDS = 60


def fail(message):
    sys.exit(f"docs-run.py: error: {message}")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Stage:
    """A page's folder, ports and processes."""

    def __init__(self, text, folder):
        self.folder = Path(folder)
        names = sorted(set(PORT.findall(text)) | set(DEFAULTS))
        self.ports = dict(zip(names, free_ports(len(names))))
        self.started = []
        tools = self.folder / ".bin"
        tools.mkdir()
        for name, path in {"tidegate": TARGET / "debug/tidegate", "envoy": ".tools/bin/envoy"}.items():
            (tools / name).symlink_to((ROOT / path).resolve(strict=True))
        listeners = {option: f"127.0.0.1:{self.ports[port]}" for port, option in DEFAULTS.items()}
        server = f"http://127.0.0.1:{self.ports['18080']}"
        path = f"{tools}:{os.environ['PATH']}"
        self.environment = {**os.environ, **listeners, "TIDEGATE_SERVER": server, "PATH": path}

    def here(self, text):
        text = PORT.sub(lambda port: self.ports[port[0]], text)
        return text.replace(MODULE, str(ROOT / "dist/tidegate.wasm"))

    def bash(self, commands):
        options = {"cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL}
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return ["bash", "-euo", "pipefail", "-c", self.here(commands)], options

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.here(text))

    def run(self, commands):
        command, options = self.bash(commands)
        done = subprocess.run(command, **options, timeout=PATIENCE_SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def start(self, commands, url):
        # One command, in the place of its shell: then the process that is ended is the one that was started.
        command, options = self.bash(f"exec {commands.strip()}")
        log = (self.folder / f"log-{len(self.started)}").open("w+")
        process = subprocess.Popen(command, **{**options, "stdout": log})
        self.started.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not answers(self.here(url)):
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                raise RuntimeError(f"does not answer at {url}:\n{log.read()[-4000:]}")
            time.sleep(0.1)

    def end(self):
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def play(page):
    """Runs the blocks of a page; says how many there are."""
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    marks = len(re.findall(r"^<!-- (?:file|run|start)\b", text, re.MULTILINE))
    if marks != len(blocks):
        fail(f"{page}: {marks - len(blocks)} marks stand before no fenced block")
    with tempfile.TemporaryDirectory(prefix="tidegate-docs-") as folder:
        stage = Stage(text, folder)
        try:
            for block in blocks:
                kind, argument, shown, hidden = block.groups()
                body = hidden if shown is None else shown
                line = text.count("\n", 0, block.start()) + 1
                try:
                    if kind == "file":
                        stage.write(argument, body)
                    elif kind == "run":
                        print(stage.run(body), end="")
                    else:
                        stage.start(body, argument)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    fail(f"{page}:{line}: {error}")
        finally:
            stage.end()
    return len(blocks)


def example(folder):
    """Runs an example's `try`, which must end with the block of its page."""
    shown = re.search(r"^```text\n(.*?)^```$", (folder / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    with tempfile.TemporaryDirectory(prefix="tidegate-docs-") as work:
        try:
            printed = Stage("", work).run(f"'{folder}/try'")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            fail(f"{folder}/try: {error}")
    if not printed.endswith(shown):
        fail(f"{folder}/try: found at the end\n{printed[-len(shown):]}\nexpected\n{shown}")
    print(f"docs-run.py: {folder.relative_to(ROOT)}/try prints what its page shows", file=sys.stderr)


def main():
    # So that what was started ends also where this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pages = [Path(name).resolve() for name in sys.argv[1:]] or sorted((ROOT / "docs").rglob("*.md"))
    total = 0
    if not sys.argv[1:]:
        example(ROOT / "examples/migration")
    for page in pages:
        count = play(page) if "<!-- " in page.read_text() else 0
        if count:
            print(f"docs-run.py: {page.relative_to(ROOT)}: {count} blocks hold", file=sys.stderr)
        total += count
    if not total:
        fail("no page has a block to run")


main()
