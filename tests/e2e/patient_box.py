"""The cloud in a box, whose machines' agents wait longer for their store before they stop jobs.

python patient_box.py SECONDS WORDS…
Where hours take a minute, ten minutes are a second: a busy host keeps an agent waiting longer.
"""

import sys
from functools import partial

from cloudwhale.cli import main
from cloudwhale_providers.sandbox import serving

if __name__ == "__main__":
    patient = partial(serving.House, attempt_lease_s=float(sys.argv[1]))
    serving.House = patient  # type: ignore[assignment, misc]
    sys.argv[1:] = sys.argv[2:]
    main()
