"""What is Cloud Storage's own among object stores: for whoever meets in `gs://`, agents too.

Another address than Google's is told by STORAGE_EMULATOR_HOST, as to Google's own clients (client
libraries, "Emulator"). Credentials are the application default ones, which obstore finds by itself:
GOOGLE_APPLICATION_CREDENTIALS, gcloud's file, the machine's metadata service.
"""

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from xml.sax.saxutils import unescape

EMULATOR = "STORAGE_EMULATOR_HOST"
PUBLIC = "https://storage.googleapis.com"
REGIONS = "cloudwhale_providers.gcp.regions_of_buckets"
"""By name: agents are not given it, and never ask."""
TOKEN = "/computeMetadata/v1/"
"""Where a client asks for a machine's own credentials when the environment has none."""
KEY_FILE = ("service account file", "pem file", "RSA key")
"""What obstore says of a file of credentials that is not there or holds none."""
DETAILS = re.compile(r"<Details>([^<]{1,300})</Details>")
MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")


class GsStore:
    """See spi.stores.StoreKind."""

    variables = "GOOGLE_"
    credentials_at = ("169.254.169.254", "fd20:ce::254")
    """Compute Engine documentation, "View and query VM metadata"."""
    to_read = "storage.objects.list and storage.objects.get"

    def endpoint(self) -> str:
        """See StoreKind."""
        said = os.environ.get(EMULATOR, "").rstrip("/")
        return said if not said or "://" in said else f"http://{said}"

    def options(self) -> Mapping[str, str]:
        """See StoreKind."""
        endpoint = self.endpoint()
        return {"base_url": endpoint} if endpoint else {}

    def client(self) -> Mapping[str, str]:
        """See StoreKind."""
        return {"allow_http": "true"} if self.endpoint().startswith("http://") else {}

    def region_of(self, bucket: str) -> str:
        """See StoreKind; of one that lies in several regions none is said."""
        asked: Callable[[str, str], str] = import_module(REGIONS).region_of
        return asked(self.endpoint() or PUBLIC, bucket)

    def is_elsewhere(self, says: str) -> bool:
        """See StoreKind: a bucket is found wherever it is asked for."""
        return False

    def lacks_credentials(self, says: str) -> bool:
        """See StoreKind."""
        return TOKEN in says or any(word in says for word in KEY_FILE)

    def refusal(self, says: str) -> str:
        """See StoreKind: who it was stands in the details, the message is always the same."""
        found = DETAILS.search(says) or MESSAGE.search(says)
        return unescape(found[1]) if found else ""
