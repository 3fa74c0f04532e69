"""Files of settings that bash reads, such as ci/release.env, for the scripts in Python."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def names(path):
    """What such a file sets: NAME=value, in which $OTHER stands for one above."""
    found = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE):
        found[key] = re.sub(r"\$(\w+)", lambda match: found[match[1]], value.strip("'"))
    return found


def release():
    """The names of owner and registry."""
    return names(ROOT / "ci/release.env")
