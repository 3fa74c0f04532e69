#!/usr/bin/env python3
"""What the workflow of releases states about an image, for cosign to sign: ci/release/predicate.py PROVENANCE

Printed is the predicate of PROVENANCE (ci/release/provenance.py) with the run of the workflow as the builder: what is signed by the
workflow's own identity was built by it.
"""

import json
import os
import sys
from pathlib import Path


def predicate(statement, environment):
    server, name = environment["GITHUB_SERVER_URL"], environment["GITHUB_REPOSITORY"]
    run = f"{environment['GITHUB_RUN_ID']}/attempts/{environment['GITHUB_RUN_ATTEMPT']}"
    return {
        **statement["predicate"],
        "runDetails": {
            "builder": {"id": f"{server}/{environment['GITHUB_WORKFLOW_REF']}"},
            "metadata": {"invocationId": f"{server}/{name}/actions/runs/{run}"},
        },
    }


def main(words):
    if len(words) != 1:
        sys.exit("predicate.py: error: usage: ci/release/predicate.py PROVENANCE")
    print(json.dumps(predicate(json.loads(Path(words[0]).read_text()), os.environ), indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
