"""Unpacks what the house has packed, as strictly as this Python can."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, into: Path, how: str = "data") -> None:
    """Unpack an archive; `how`: the name of tarfile's filter."""
    # Debian 12's Python 3.11.2 has no extraction filters yet; what is packed passes them.
    strictly = {"filter": how} if hasattr(tarfile, "data_filter") else {}
    archive.extractall(into, **strictly)  # type: ignore[arg-type]
