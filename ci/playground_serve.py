#!/usr/bin/env python3
"""Serves a folder of files on 127.0.0.1: playground_serve.py FOLDER [PORT], 8020 if none is named."""

import functools
import http.server
import sys


class Files(http.server.SimpleHTTPRequestHandler):
    # Browsers run nothing that is of another type, and not every system's list knows these.
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self):
        # What is built anew is shown anew.
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_):
        pass


def server(folder, port):
    """A server that is not running yet; port 0: any that is free."""
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Files, directory=folder))


def main():
    folder = sys.argv[1]
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8020
    try:
        serving = server(folder, port)
    except OSError as error:
        sys.exit(f"playground_serve.py: error: port {port}: {error.strerror}; another one: make playground PORT=8021")
    print(f"the playground is at http://127.0.0.1:{serving.server_address[1]}/ (Ctrl-C ends it)", flush=True)
    try:
        serving.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
