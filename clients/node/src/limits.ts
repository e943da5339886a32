/** The contract's limits, in one place. Sizes are bytes of UTF-8. */

/** The largest message either end sends or takes. The client finds a larger one before it sends it. */
export const MESSAGE_BYTES = 32 * 1024 * 1024;

/** Seats and conversations: 1 to this many bytes. */
export const KEY_BYTES = 512;

/** Work keys (which may be empty) and turn ids (which may not): at most this many bytes. */
export const ID_BYTES = 256;

/** The smallest hard limit for a block that a caller may ask for. */
export const HARD_LIMIT_FLOOR_BYTES = 4096;
