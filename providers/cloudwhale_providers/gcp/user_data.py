"""What machines of Compute Engine are told at boot: see first_words.

It stands in their metadata as `user-data`, which cloud-init of Ubuntu's images reads (cloud-init
docs, "Google Compute Engine"). CLOUDWHALE_DOOR is empty: all machines are one service account to
the mailbox's bucket. A sandbox says where the bucket and the metadata server are by
STORAGE_EMULATOR_HOST and GCE_METADATA_HOST, as Google's own clients are told.
"""

from cloudwhale_providers.first_words import Cloud, first_words

MOST_BYTES = 256 * 1024
"""Of one value: Compute Engine docs, "About VM metadata", limitations."""
CLOUD = Cloud(name="GCP", package="cloudwhale_providers.gcp", notices="gcp", most_bytes=MOST_BYTES)


def user_data(mailbox: str, region: str, bundle: str) -> str:
    """Return the text for a mailbox, the machines' region, and the bundle's key there.

    Raise Denied when it is longer than GCP takes, or would not be one word to a shell.
    """
    return first_words(CLOUD, mailbox, region, bundle)
