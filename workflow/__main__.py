"""python -m workflow COMMAND …: an interruption or a full disk gets one line, not a traceback."""

import errno
import importlib
import os
import resource
import signal
import sys

FILES = 256  # a kernel opens some 60 files
CAUSES = errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES  # a disk or folder that refuses


def main(command: str, *arguments: str) -> int:
    """Import the command's module and run it."""
    # Ctrl-C ends this process at once. Commands that must tidy up first set their own handler: an
    # exception could be raised, and swallowed or wrapped, in any import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked while Python started
    try:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= files < FILES:
            sys.exit(f"Only {files} files may be open at a time; use `ulimit -n {FILES}` or more.")
        return importlib.import_module(f"workflow.{command}").main(*arguments)
    except OSError as error:
        if error.errno not in CAUSES:
            raise
        sys.exit(f"{os.strerror(error.errno)}: {error.filename or os.getcwd()}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
