"""The cloud in a box, whose machines' agents wait longer for their store before they stop jobs.

python patient_box.py SECONDS WORDS…
Where hours take a minute, ten minutes are a second: a busy host keeps an agent waiting longer.
"""

import sys
from dataclasses import replace

from cloudwhale.cli import main
from cloudwhale_providers.sandbox.hypervisor import House
from cloudwhale_providers.sandbox.serving import Serving


def lay(attempt_lease_s: float) -> None:
    """Make every house that is served a patient one."""
    made = Serving._house

    def patient(self: Serving, has_containers: bool) -> House:
        return replace(made(self, has_containers), attempt_lease_s=attempt_lease_s)

    Serving._house = patient  # type: ignore[method-assign]


if __name__ == "__main__":
    lay(float(sys.argv[1]))
    sys.argv[1:] = sys.argv[2:]
    main()
