"""The numbers of the block and of the call lines, each once, with the reason beside it.

The limits of the contract (sizes of messages and keys) stand in `turnledger.limits`, which every client shares.
"""

from typing import Final

#: Bytes of UTF-8 for the entries and the account of one block. About 6 000 tokens: a few percent of the context that
#: today's executors have, enough for 20 turns of ordinary length. A constant and no knob, so that the block means the
#: same on every node and a prompt's growth is bounded by reading one number.
BLOCK_BYTES: Final = 24_000

#: The share of the newest entries, shown whole, once the whole history does not fit: three quarters.
WHOLE_BYTES: Final = 18_000

#: The share of the account of the older entries: the last quarter.
ACCOUNT_BYTES: Final = BLOCK_BYTES - WHOLE_BYTES

#: An argument value or an error over this many characters (code points) is over budget. An identifier, an address, a
#: title or one sentence fits; a mail's body or a file does not, and the reader needs to know that it was sent, not read
#: it.
PAYLOAD_CHARACTERS: Final = 200

#: Read calls shown of one turn. Reads may be run again, so the tail of a long search is worth a count and no more.
READS_SHOWN: Final = 12

#: Characters shown of a turn id, at least: what tools show of a commit or a run.
TURN_ID_CHARACTERS: Final = 8

#: JSON nested deeper than this is kept as text: deeper than any tool's arguments, and far from the interpreter's own
#: limit.
JSON_DEPTH: Final = 64

#: Arguments of more characters than this are kept as one value, unread: no model writes that much into one call, and to
#: read a million members takes seconds.
JSON_CHARACTERS: Final = 1024 * 1024

#: Entries kept of one conversation unless configured: more than most tickets see, and what fits `BLOCK_BYTES` at about
#: 1.2 KB a turn.
MAX_ENTRIES_DEFAULT: Final = 20

#: The most bytes that a rewrite of an argument or an error may have: about as much as is shown without one.
CONDENSED_BYTES: Final = 200

#: The most bytes of the words that stand for one whole turn in the account: two or three sentences, so that a quarter
#: of the block holds about ten turns.
NOTE_BYTES: Final = 400

#: A text larger than this, in bytes, gets no order: a small model would not read it, and the answer of an Append would
#: carry it back.
ORDER_BYTES: Final = 64 * 1024

#: Bytes of write names that one turn's facts may have in the account: a tenth of it. The others are counted.
WRITE_NAMES_BYTES: Final = 600
