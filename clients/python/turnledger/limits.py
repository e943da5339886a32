"""The contract's limits, in one place for the client and the sidecar.

Sizes are bytes of UTF-8 unless a name says otherwise.
"""

from typing import Final

#: The largest message either end sends or takes. The sidecar checks it in its handlers, below `TRANSPORT_BYTES`, so
#: that a caller gets a reason and not a bare transport error.
MESSAGE_BYTES: Final = 32 * 1024 * 1024

#: The transport's own limit. Twice the message limit: whatever is a little too large still reaches the handler's check.
TRANSPORT_BYTES: Final = 2 * MESSAGE_BYTES

#: Seats and conversations: 1 to this many bytes.
KEY_BYTES: Final = 512

#: Work keys (which may be empty) and turn ids (which may not): at most this many bytes.
ID_BYTES: Final = 256

#: Calls of one turn, sensitive names of one call, fits of one request: at most so many. Each takes some hundred times
#: its bytes once it is read, and 32 MiB have room for millions.
ITEMS: Final = 100_000

#: The smallest hard limit for a block that a caller may ask for.
HARD_LIMIT_FLOOR_BYTES: Final = 4096
