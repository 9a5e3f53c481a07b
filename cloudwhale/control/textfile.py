"""Writes metrics into a file now and then, for node_exporter's textfile collector."""

import logging
import threading
from pathlib import Path

from cloudwhale.clock import pause
from cloudwhale.control.exposition import Exposition
from cloudwhale.model.units import Seconds

WRITE_EVERY_S: Seconds = 15.0  # as often as Prometheus commonly scrapes
SUFFIX = ".prom"
"""Other files are not read by the textfile collector."""

log = logging.getLogger("cloudwhale.metrics")


class Textfile:
    """A file that is written by rename, at last when it is closed; one that cannot be, is told."""

    def __init__(self, file: Path, exposition: Exposition) -> None:
        self._file, self._exposition = file, exposition
        self._stop = threading.Event()
        self.trouble = ""
        """Why the newest could not be written; empty when it was."""
        self._thread = threading.Thread(target=self._write_on, name="textfile", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write for the last time."""
        self._stop.set()
        self._thread.join()

    def _write_on(self) -> None:
        while not self._stop.is_set():
            self._write()
            pause(WRITE_EVERY_S, self._stop)
        self._write()

    def _write(self) -> None:
        if not self._exposition.is_told:
            return  # another process has the controller, and may write the same file
        try:
            self._exposition.write(self._file)
            self.trouble = ""
        except OSError as error:
            says = f"{self._file} cannot be written: {error.strerror or error}"
            if says != self.trouble:
                log.warning("metrics: %s", says)
            self.trouble = says
