"""How the account of the box calls things: whoever is inside and its cloud agree on them."""

ACCOUNT = "123456789012"
REGIONS = ("us-east-1", "us-west-2")
"""Those that an installation inside rents in."""
BUCKET = "cloudwhale-sandbox"
FOLDER = "mailbox"
"""Of the mailbox in the bucket."""
INSTANCE_PROFILE, SCHEDULER_ROLE = "cloudwhale-machine", "cloudwhale-stops"
ACCESS_KEY, SECRET_KEY = "AKIDCLOUDWHALESANDBOX", "not-a-secret"
"""Of the box's own user; they open nothing anywhere else."""
NODE, LEASE, ROLE = "cloudwhale:node", "cloudwhale:lease", "cloudwhale:role"
"""Tags that a machine reads of itself."""
