"""This host: what it has for jobs, what its user says of it, what its drivers tell."""

from cloudwhale.host.containers import check_docker, images_here, runtimes
from cloudwhale.host.counted import Counted
from cloudwhale.host.facts import facts
from cloudwhale.host.gpus import check_gpus
from cloudwhale.host.groups import Hierarchies, text_of
from cloudwhale.host.options import (
    AS_IT_IS,
    HostOptions,
    add_arguments,
    as_arguments,
    declared,
    options_from,
)

__all__ = [
    "AS_IT_IS",
    "Counted",
    "Hierarchies",
    "HostOptions",
    "add_arguments",
    "as_arguments",
    "check_docker",
    "check_gpus",
    "declared",
    "facts",
    "images_here",
    "options_from",
    "runtimes",
    "text_of",
]
