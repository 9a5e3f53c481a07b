"""What a machine does when it boots: the same text for all machines of one agent version.

What differs between machines stands in their tags. The line that begins with `# cloudwhale: ` is
JSON for whoever reads the text without running it. Nothing secret may stand here: whoever may
describe an instance reads it. Not tried on a real machine yet; `sh -n` and the sandbox read it.
"""

import json
import re
from typing import Any

from cloudwhale.spi.errors import Denied

MOST_BYTES = 16 * 1024
"""Before base64: EC2 User Guide, "Run commands when you launch an EC2 instance"."""
TAKEN_OVER_MIN = 30
"""Minutes within which the agent must have taken the watchdog over, installing included."""
_SHA256 = re.compile(r"[0-9a-f]{64}")

SCRIPT = """\
#!/bin/sh
shutdown -h +{minutes}
# The machine ends by then (its shutdown terminates it), unless an agent has taken the watch over.
# cloudwhale: {block}
set -eu
bundle='{bundle}'
place=/opt/cloudwhale
mkdir -p "$place"
cd "$place"
for again in 1 2 3 4 5; do
    aws s3 cp --only-show-errors --region '{region}' '{url}' bundle.tar.gz && break
    sleep $((again * 5))
done
echo '{sha256}  bundle.tar.gz' | sha256sum --check --quiet || shutdown -h now
mkdir -p "$bundle"
tar -xzf bundle.tar.gz -C "$bundle"
rm bundle.tar.gz
exec "$bundle/boot" --mailbox '{mailbox}' --region '{region}'
"""


def user_data(mailbox: str, region: str, bundle: str) -> str:
    """Return the text for a mailbox, its region, and the bundle's key there.

    Raise Denied when it is longer than AWS takes, or would not be one word to a shell.
    """
    for word in (mailbox, region, bundle):
        if not word.isprintable() or "'" in word:
            raise Denied(f"{word!r} cannot be said to a machine", "Use plain letters and digits.")
    found = _SHA256.search(bundle)
    said: dict[str, Any] = {
        "mailbox": mailbox, "region": region, "bundle": bundle,
        "sha256": found[0] if found else "",
    }  # fmt: skip
    text = SCRIPT.format(
        minutes=TAKEN_OVER_MIN, url=f"{mailbox.rstrip('/')}/{bundle}",
        block=json.dumps(said, sort_keys=True), **(said | {"bundle": said["sha256"] or "agent"}),
    )  # fmt: skip
    size = len(text.encode())
    if size > MOST_BYTES:
        raise Denied(
            f"what machines are told at boot has {size} bytes, and AWS takes {MOST_BYTES}",
            "Give the mailbox a shorter URL.",
        )
    return text
