#!/usr/bin/env python3
"""Archives whose bytes depend on what is in them alone: ci/release/archive.py OUT [NAME=FILE]...

OUT ends in .tar or .tar.gz. NAME is a file's name in it; one that is a folder brings all that is in it. Entries are sorted and
belong to nobody, no time stands in them, and a program stays one. gzip stores without compression, as in ci/oci.py: compressors
differ between machines.
"""

import io
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import oci

PROGRAM, FILE, FOLDER = 0o755, 0o644, 0o755


def files(name, path):
    """The files of a folder, or the file itself, by their names in the archive."""
    if not path.is_dir():
        return {name: (path.read_bytes(), PROGRAM if path.stat().st_mode & 0o100 else FILE)}
    return {
        f"{name}/{one.relative_to(path).as_posix()}": (one.read_bytes(), PROGRAM if one.stat().st_mode & 0o100 else FILE)
        for one in sorted(path.rglob("*"))
        if one.is_file()
    }


def tar(entries, with_folders=False):
    """The archive of a dictionary of names to contents and modes; with the folders above them, if that is asked."""
    entries = dict(entries)
    if with_folders:
        for name in list(entries):
            for folder in Path(name).parents:
                if folder.name:
                    entries[folder.as_posix()] = (None, FOLDER)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (data, mode) in sorted(entries.items()):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime = mode, 0
            if data is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def main(words):
    if not words or not all("=" in word for word in words[1:]):
        sys.exit("archive.py: error: usage: ci/release/archive.py OUT [NAME=FILE]...")
    entries = {}
    for word in words[1:]:
        name, _, path = word.partition("=")
        entries |= files(name, Path(path))
    data = tar({name.removeprefix("./"): entry for name, entry in entries.items()})
    Path(words[0]).write_bytes(oci.stored(data) if words[0].endswith("gz") else data)


if __name__ == "__main__":
    main(sys.argv[1:])
