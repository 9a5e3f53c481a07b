"""What machines of EC2 are told at boot: see first_words.

CLOUDWHALE_DOOR is `ROLE-ID:INSTANCE-ID` there. A sandbox says where S3 and the metadata service are
by AWS_ENDPOINT_URL and AWS_EC2_METADATA_SERVICE_ENDPOINT.
"""

from cloudwhale_providers.first_words import Cloud, first_words

MOST_BYTES = 16 * 1024
"""Before base64: EC2 User Guide, "Run commands when you launch an EC2 instance"."""
CLOUD = Cloud(
    name="AWS",
    package="cloudwhale_providers.aws",
    notices="aws",
    most_bytes=MOST_BYTES,
    environment={"AWS_REGION": "@region@", "AWS_DEFAULT_REGION": "@region@"},
)


def user_data(mailbox: str, region: str, bundle: str) -> str:
    """Return the text for a mailbox, its region, and the bundle's key there.

    Raise Denied when it is longer than AWS takes, or would not be one word to a shell.
    """
    return first_words(CLOUD, mailbox, region, bundle)
