"""What every test shares: property tests draw the same examples on every machine."""

import os

from hypothesis import settings

pytest_plugins = ["postgres", "fake_gpus", "dockerd"]

# Seeded, so that a failure is everybody's failure; no deadline, because machines may be busy.
settings.register_profile("seeded", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("seeded")

# Machines that boot are for the tests of booting: they need root, namespaces and tens of seconds.
os.environ.setdefault("CLOUDWHALE_SANDBOX_MACHINES", "processes")
