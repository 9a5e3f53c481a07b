"""A call that is refused, with the code that the real service gives, in that service's words."""

import json
from xml.sax.saxutils import escape

from cloudwhale_providers.sandbox.endpoint.messages import Answer

REQUEST_ID = "00000000-0000-0000-0000-000000000000"
JSON_SERVICES = frozenset({"scheduler", "servicequotas", "ssm"})


class Refused(Exception):
    """Raised by whoever answers; the endpoint writes it as the service does."""

    def __init__(self, code: str, says: str, status: int = 400) -> None:
        super().__init__(f"{code}: {says}")
        self.code, self.says, self.status = code, says, status


THROTTLED = {
    "ec2": Refused("RequestLimitExceeded", "Request limit exceeded.", 503),
    "s3": Refused("SlowDown", "Please reduce your request rate.", 503),
    "scheduler": Refused("ThrottlingException", "Rate exceeded", 429),
    "servicequotas": Refused("TooManyRequestsException", "Too many requests"),
    "compute": Refused("rateLimitExceeded", "Rate Limit Exceeded", 403),
}
"""How services say that they are asked too often; the others say `Throttling`."""

FAILED = {
    "ec2": Refused("InternalError", "An internal error has occurred", 500),
    "s3": Refused("InternalError", "We encountered an internal error. Please try again.", 500),
    "scheduler": Refused("InternalServerException", "Unexpected error encountered.", 500),
    "servicequotas": Refused("ServiceException", "Something went wrong.", 500),
    "compute": Refused("backendError", "The service is currently unavailable.", 503),
}


_UNKNOWN_KEY = "The security token included in the request is invalid."
REFUSED_KEYS = {
    "ec2": Refused(
        "AuthFailure", "AWS was not able to validate the provided access credentials", 401
    ),
    "s3": Refused(
        "InvalidAccessKeyId",
        "The AWS Access Key Id you provided does not exist in our records.",
        403,
    ),
    "iam": Refused("InvalidClientTokenId", _UNKNOWN_KEY, 403),
    "sts": Refused("InvalidClientTokenId", _UNKNOWN_KEY, 403),
    "": Refused("UnrecognizedClientException", _UNKNOWN_KEY),
}
"""How services say that they do not know an access key."""

_NO_TOKEN = "Request is missing Authentication Token"
UNSIGNED = {
    "ec2": REFUSED_KEYS["ec2"],
    "s3": Refused("AccessDenied", "Access Denied", 403),
    "": Refused("MissingAuthenticationToken", _NO_TOKEN, 403),
}
"""How services say that nobody has signed."""

_UNLIKE = (
    "The request signature we calculated does not match the signature you provided. Check your "
    "key and signing method."
)
UNLIKE = {
    "ec2": REFUSED_KEYS["ec2"],
    "s3": Refused("SignatureDoesNotMatch", _UNLIKE, 403),
    "iam": Refused("SignatureDoesNotMatch", _UNLIKE, 403),
    "sts": Refused("SignatureDoesNotMatch", _UNLIKE, 403),
    "": Refused("InvalidSignatureException", _UNLIKE, 403),
}
"""How services say that it was not signed with the secret key of its access key."""

_EXPIRED = "The security token included in the request is expired"
EXPIRED = {
    "ec2": Refused("RequestExpired", "Request has expired.", 400),
    "s3": Refused("ExpiredToken", "The provided token has expired.", 400),
    "iam": Refused("ExpiredToken", _EXPIRED, 403),
    "sts": Refused("ExpiredToken", _EXPIRED, 403),
    "": Refused("ExpiredTokenException", _EXPIRED, 400),
}
"""How services say that temporary keys have run out."""


def throttled(service: str) -> Refused:
    """Return how a service refuses what comes too often."""
    return THROTTLED.get(service) or Refused("Throttling", "Rate exceeded")


def failed(service: str) -> Refused:
    """Return how a service says that it is at fault."""
    return FAILED.get(service) or Refused("InternalFailure", "Internal failure", 500)


def written(service: str, refused: Refused) -> Answer:
    """Return a refusal as the service writes it."""
    if service in JSON_SERVICES:
        return _json(refused)
    body = f"<Code>{escape(refused.code)}</Code><Message>{escape(refused.says)}</Message>"
    if service == "s3":
        text = f"<Error>{body}<RequestId>{REQUEST_ID}</RequestId></Error>"
    elif service == "ec2":
        errors = f"<Errors><Error>{body}</Error></Errors>"
        text = f"<Response>{errors}<RequestID>{REQUEST_ID}</RequestID></Response>"
    else:
        error = f"<Error><Type>Sender</Type>{body}</Error>"
        text = f"<ErrorResponse>{error}<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return Answer(refused.status, {"Content-Type": "text/xml"}, (head + text).encode())


def _json(refused: Refused) -> Answer:
    body = json.dumps({"__type": refused.code, "Message": refused.says, "message": refused.says})
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": refused.code}
    return Answer(refused.status, headers, body.encode())
