"""The first module of every command; it imports nothing, so Ctrl-C is answered from here on."""

import signal


def main() -> None:
    """Run the command that was typed; ends the process with its exit code, 130 after Ctrl-C."""
    try:
        from cloudwhale.cli.entry import main as typed

        typed()
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        # What is left is Python's own tidying, which would answer Ctrl-C with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
