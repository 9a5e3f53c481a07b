"""Times of a lease that planner and agent must count alike."""

from cloudwhale.model.units import Seconds

WATCHED_S: Seconds = 900.0  # how long a machine goes on without hearing of its controller
SAVING_S: Seconds = 30.0  # from the last word of a job to its checkpoint in the store
SOON_S: Seconds = 300.0  # what is taken away later than that goes on working for now
