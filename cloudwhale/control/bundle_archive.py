"""Writes files as one tar.gz: the same bytes for the same content, wherever and whenever."""

import gzip
import hashlib
import io
import os
import tarfile
import zlib
from pathlib import Path

from cloudwhale.control.bundle_distributions import Files

LEVEL = 6  # half a second more than 1, and a megabyte less for every machine to fetch


def write(files: Files, into: Path) -> str:
    """Write an archive in the order of the files; return its SHA-256. Raise OSError."""
    with into.open("wb") as file:
        # No name and no time in the header: they would differ from host to host.
        with (
            gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path, content in files.items():
                body = content()
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(body), 0o755 if path.endswith(".sh") else 0o644
                archive.addfile(entry, io.BytesIO(body))
        file.flush()
        os.fsync(file.fileno())  # a power cut leaves none that is named after what it lacks
    with into.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def first(file: Path) -> bytes:
    """Return the content of an archive's first file; raise OSError for one that is none."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            entry = archive.next()
            opened = None if entry is None else archive.extractfile(entry)
            return b"" if opened is None else opened.read()
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise OSError(f"{file} is no archive: {error}") from error
