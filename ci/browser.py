"""A headless Chromium with one page, driven by its DevTools protocol over a pair of pipes.

Python has no WebSocket, and the pipes need none: messages are JSON, each ended by a zero. All exceptions, errors and warnings of the
page are kept, and the addresses of all its requests.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Seconds until something that is waited for counts as missing.
BOUND = 120

ARROWS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13, " ": 32, "Home": 36, "End": 35}


class Browser:
    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="playground-browser-")
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def wire():
            # The program reads from descriptor 3 and writes to 4. First out of their way.
            read, write = os.dup(to_browser), os.dup(from_browser)
            while read < 5:
                read = os.dup(read)
            while write < 5:
                write = os.dup(write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        # Its sandbox needs rights that a container rarely has, and it opens only our own page.
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            [program, *options, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=wire, start_new_session=True,
            # Without a language of its own Chromium takes a name that its own formats of numbers refuse.
            env={**os.environ, "LANG": "en_US.UTF-8", "LC_ALL": "en_US.UTF-8", "LANGUAGE": "en_US"},
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last = 0
        self.session = None
        self.complaints = []
        self.requests = []
        self.downloads = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        # Workers are targets of their own.
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.last += 1
        number = self.last
        message = {"id": number, "method": method, "params": parameters}
        if self.session and not method.startswith("Browser."):
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        answer = self.until(lambda heard: heard.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def until(self, is_it):
        end = time.monotonic() + BOUND
        while True:
            text, zero, rest = self.buffer.partition(b"\0")
            if zero:
                self.buffer = rest
                heard = json.loads(text)
                self.listen(heard)
                if is_it(heard):
                    return heard
                continue
            ready, _, _ = select.select([self.reader], [], [], max(0, end - time.monotonic()))
            more = os.read(self.reader, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser does not answer")
            self.buffer += more

    def listen(self, heard):
        parameters = heard.get("params", {})
        match heard.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.complaints.append(json.dumps(parameters["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Target.attachedToTarget" if parameters["targetInfo"]["type"] == "worker":
                # Their complaints and requests count as well. Sent without waiting: answers come in between.
                for method in ("Runtime.enable", "Network.enable"):
                    self.last += 1
                    message = {"id": self.last, "method": method, "sessionId": parameters["sessionId"]}
                    os.write(self.writer, json.dumps(message).encode() + b"\0")

    def open(self, url):
        opened = self.call("Page.navigate", url=url)
        if opened.get("errorText"):
            raise RuntimeError(f"{url}: {opened}")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {json.dumps(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def shows(self, expression):
        """Waits until an expression is true."""
        self.waits(f"Boolean({expression})")

    def promises(self, expression):
        """Waits until what an expression promises is true."""
        self.waits(f"{expression}.then(Boolean)")

    def waits(self, expression):
        end = time.monotonic() + BOUND
        while not self.value(expression):
            if time.monotonic() > end:
                raise AssertionError(f"not shown: {expression}")
            time.sleep(0.02)

    def look(self, width, height=900, scheme="light", reduced=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def press(self, key, times=1):
        code = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": ARROWS[key]}
        text = {"text": {" ": " ", "Enter": "\r"}[key]} if key in (" ", "Enter") else {}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown", **code, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path, whole=False, height=None):
        """A picture of what is seen, of the whole page, or of its first `height` pixels."""
        more = {}
        if height:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            more = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(height, size["height"]), "scale": 1}}
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole or bool(height), **more)
        with open(path, "wb") as file:
            file.write(base64.b64decode(taken["data"]))
