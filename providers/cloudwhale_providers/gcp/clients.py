"""Google's APIs: clients made when they are needed, and one way to ask them.

Google's own library brings the description of each API along, and takes and gives plain dicts. Its
transport is not safe for threads: each thread has one of its own.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from threading import Lock, local
from typing import Any
from weakref import finalize

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.gcp.asking import Refused
from cloudwhale_providers.gcp.errors import Errand, failure, refusal
from cloudwhale_providers.gcp.saying import told

VERSIONS: Mapping[str, str] = {
    "compute": "v1", "iam": "v1", "cloudresourcemanager": "v3", "serviceusage": "v1",
    "storage": "v1",
}  # fmt: skip
UNSAID = frozenset({"returnPartialSuccess"})
"""What lists recommend in their descriptions, and the list of their parameters leaves out."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""What a caller may do is said by IAM alone."""
ANSWER_S: Seconds = 60.0
WAIT_S: Seconds = 150.0  # `zoneOperations.wait` answers within two minutes, says its reference
INSTALL = "pip install 'cloudwhale[gcp]'"

Credentials = Callable[[], tuple[Any, str]]
"""Returns who asks, and the project that they are for; raises as google.auth does."""


class Clients:
    """See Calls; safe for threads. Nothing is asked twice: what that would do, we decide."""

    def __init__(
        self,
        endpoint: str = "",
        answer_s: Seconds = ANSWER_S,
        credentials: Credentials | None = None,
        transport: Callable[[Seconds], Any] | None = None,
    ) -> None:
        """Take where all APIs are asked instead of at Google; empty: at Google.

        `transport` makes what requests go through, as httplib2.Http is, with a patience.
        """
        self._endpoint = endpoint.rstrip("/")
        self._answer_s = answer_s
        self._log_in = _default if credentials is None else credentials
        self._transport = _http if transport is None else transport
        self._who: tuple[Any, str] | None = None
        self._lock = Lock()
        self._own = local()

    def call(self, service: str, method: str, **words: Any) -> Mapping[str, Any]:
        """Return the answer of a method; raise Denied, TryAnother or Unreachable, with remedy."""
        errand = Errand.of(service, method, words)
        wrong = import_of("googleapiclient.errors")
        try:
            request = self._request(service, method, words)
            limit_s = WAIT_S if method.endswith(".wait") else self._answer_s
            found: Mapping[str, Any] | str = request.execute(
                http=self._line(limit_s).http, num_retries=0
            )
        except wrong.HttpError as error:
            said = told(int(error.resp.status), error.content)
            raise refusal(said, errand) from Refused(said)
        except _trouble() as error:
            raise failure(error, errand) from error
        return {} if isinstance(found, str) else found  # what is deleted answers with nothing

    def project(self) -> str:
        """Return the project of the credentials; raise Denied when there are none."""
        try:
            return self._logged_in()[1]
        except _trouble() as error:
            raise failure(error, Errand("google.auth.default")) from error

    def who(self) -> str:
        """Return the e-mail of a service account that asks; empty for a person."""
        try:
            return str(getattr(self._logged_in()[0], "service_account_email", "") or "")
        except _trouble() as error:
            raise failure(error, Errand("google.auth.default")) from error

    def _request(self, service: str, method: str, words: Mapping[str, Any]) -> Any:
        known = {name: word for name, word in words.items() if name not in UNSAID}
        request: Any = _method(self._endpoint, service, method)(**known)
        for name in UNSAID & words.keys():
            request.uri += f"&{name}={str(words[name]).lower()}"
        return request

    def _line(self, limit_s: Seconds) -> "_Line":
        """Return this thread's transport with a patience."""
        kept: dict[Seconds, _Line] = self._own.__dict__.setdefault("by_limit", {})
        if limit_s not in kept:
            authorized = import_of("google_auth_httplib2").AuthorizedHttp
            plain = self._transport(limit_s)
            kept[limit_s] = _Line(authorized(self._logged_in()[0], http=plain), plain)
        return kept[limit_s]

    def _logged_in(self) -> tuple[Any, str]:
        with self._lock:
            if self._who is None:
                self._who = self._log_in()
            return self._who


class _Line:
    """A thread's transport, whose connections end with it."""

    def __init__(self, http: Any, plain: Any) -> None:
        self.http = http
        close = getattr(plain, "close", None)
        if close is not None:  # before a cycle that it is part of is taken apart, socket first
            finalize(self, close)


def import_of(name: str) -> Any:
    """Return a module of Google's libraries; raise Denied when they are not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise Denied("google-api-python-client is not installed", INSTALL) from error


def _method(endpoint: str, service: str, method: str) -> Any:
    """Return what makes requests of a method."""
    *parts, verb = method.split(".")
    return getattr(_resource(endpoint, (service, *parts)), verb)


@lru_cache(maxsize=64)
def _resource(endpoint: str, names: tuple[str, ...]) -> Any:
    """Return a resource of an API, by service and parts, as methods name it.

    The library builds all methods of one whenever it is named, which takes a tenth of a second.
    What is built holds no connection: each call brings its own.
    """
    *before, last = names
    if before:
        return getattr(_resource(endpoint, tuple(before)), last)()
    document, options = _document(last), dict[str, Any]()
    if endpoint:  # it replaces the whole address, the path of the API included
        options["api_endpoint"] = f"{endpoint}/{document['servicePath']}"
    return import_of("googleapiclient.discovery").build_from_document(
        document, http=import_of("httplib2").Http(), client_options=options
    )


@cache
def _document(name: str) -> dict[str, Any]:
    """Return the description of an API that the library ships."""
    text = import_of("googleapiclient.discovery_cache").get_static_doc(name, VERSIONS[name])
    if text is None:
        raise Denied(f"this google-api-python-client does not know {name}", f"{INSTALL} --upgrade")
    found: dict[str, Any] = json.loads(text)
    return found


def _http(limit_s: Seconds) -> Any:
    """Return a connection of one thread's own."""
    found = import_of("httplib2").Http(timeout=limit_s)
    found.follow_redirects = False
    return found


def _default() -> tuple[Any, str]:
    """Return the application default credentials."""
    who, project = import_of("google.auth").default(scopes=[SCOPE])
    return who, str(project or "")


def _trouble() -> tuple[type[Exception], ...]:
    """Return what comes of a call without an answer of Google, or with one that is none."""
    auth: Any = import_of("google.auth.exceptions")
    own: Any = import_of("googleapiclient.errors")
    http: Any = import_of("httplib2")
    web: Any = import_module("http.client")
    return (
        auth.GoogleAuthError, own.Error, http.HttpLib2Error, web.HTTPException, OSError, ValueError,
        TypeError, AttributeError,
    )  # fmt: skip
