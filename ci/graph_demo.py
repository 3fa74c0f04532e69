"""The program of `make demo-graph`, run with --stay by a script that looks at its page."""

import signal
import subprocess
import threading

# The program bounds itself; this bounds the rest. It observes traffic for 40 s and tries two modes for 10 s each.
BOUND_SECONDS = 400


class GraphDemo:
    """The running program. `with` ends it."""

    def __init__(self, program, root):
        self.lines = []
        self.process = subprocess.Popen([program, "--stay"], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        # Ends the wait for a line as well.
        self.watchdog = threading.Timer(BOUND_SECONDS, self.process.kill)
        self.watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watchdog.cancel()
        if self.process.poll() is None:
            self.end()
        self.process.stdout.close()

    def until(self, text):
        """The rest of the next line that has this text."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if text in line:
                return line.partition(text)[2].strip()
        raise RuntimeError(f"make demo-graph ended with {self.process.wait()} before it printed {text!r}:\n" + "\n".join(self.lines))

    def end(self):
        """Ends it as Ctrl-C does; its exit code."""
        self.process.send_signal(signal.SIGINT)
        self.lines += self.process.stdout.read().splitlines()
        return self.process.wait(30)
