"""What S3's API calls a request: its method, its address and its words say it."""

from cloudwhale_providers.sandbox.endpoint import s3_told
from cloudwhale_providers.sandbox.endpoint.messages import Asked


def action_of(asked: Asked) -> str:
    """Return what S3 calls a request: `PutObject`, `ListObjects`."""
    key = asked.path.lstrip("/").partition("/")[2]
    query, method = asked.query, asked.method
    if "uploads" in query:
        return "CreateMultipartUpload" if method == "POST" else "ListMultipartUploads"
    if "uploadId" in query:
        return {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "GET": "ListParts"}.get(
            method, "AbortMultipartUpload"
        )
    if not key:
        if word := s3_told.word_of(asked):
            return s3_told.action_of(asked, word)
        return {"GET": "ListObjects", "HEAD": "HeadBucket", "POST": "DeleteObjects"}.get(
            method, f"{method.title()}Bucket"
        )
    return f"{method.title()}Object"
