"""Sends one message to one target, by whichever way that is told."""

from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.targets import Target
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import SettingsError

LIMIT_S: Seconds = 10.0  # of a real clock; receivers are asked to answer first and work afterwards


def send(message: Message, target: Target, now: Instant, limit_s: Seconds = LIMIT_S) -> Answer:
    """Send it once and return the answer; what is wrong with the settings is one, too.

    Imports are late: a controller that tells nobody needs none of them.
    """
    try:
        if target.way == "smtp":
            from cloudwhale.control.notifying import mail

            return mail.sent(message, target, limit_s)
        if target.way == "command":
            from cloudwhale.control.notifying import command

            return command.sent(message, target, limit_s)
        from cloudwhale.control.notifying import web

        return web.sent(message, target, now, limit_s)
    except SettingsError as error:
        return Answer("again", error.says)
