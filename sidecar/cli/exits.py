"""What an exit code says, the same for every command."""

from enum import IntEnum


class Exit(IntEnum):
    """Scripts branch on these. 2 is click's own, for wrong usage."""

    #: Done; sound; well.
    DONE = 0
    #: It failed, or the answer is no: damage was found, a component is not well, an erasure is not complete.
    NO = 1
    USAGE = 2
    #: Refused, since it could destroy something: the message names the option that says that this is meant.
    UNSAFE = 3
    #: The sidecar or its store cannot be reached: held by a process that does not answer, missing, or unreadable.
    UNREACHABLE = 4


EXIT_HELP = "Exit codes: 0 done, 1 failed or the answer is no, 2 wrong usage, 3 refused as unsafe, 4 out of reach."
