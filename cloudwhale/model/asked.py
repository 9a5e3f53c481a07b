"""What people have asked of a job that is there."""

from typing import Literal

from cloudwhale.model.happened import OfJob


class CancelAsked(OfJob):
    """Somebody wants the job gone."""

    kind: Literal["cancel-asked"] = "cancel-asked"
    by: str = ""


class PauseAsked(OfJob):
    """Somebody wants the job to stop, checkpoint first, until it is resumed."""

    kind: Literal["pause-asked"] = "pause-asked"
    by: str = ""


class ResumeAsked(OfJob):
    """Somebody wants a paused or parked job to go on."""

    kind: Literal["resume-asked"] = "resume-asked"
    by: str = ""
