"""How the project of the box calls things: whoever is inside and its cloud agree on them."""

PROJECT = "cloudwhale-sandbox"
PROJECT_NUMBER = "123456789012"
REGIONS = ("us-central1", "us-east4")
"""Those that an installation inside rents in."""
USER_ACCOUNT = f"controller@{PROJECT}.iam.gserviceaccount.com"
"""Whoever is inside."""
MACHINE_ACCOUNT = f"machine@{PROJECT}.iam.gserviceaccount.com"
DEFAULT_ACCOUNT = f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"
"""What every project has: Compute Engine's default service account."""
NETWORK = "default"
