-- One row for each recorded turn. Keys are compared byte for byte (the BINARY collation).
CREATE TABLE conversation_sessions (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of recording
  agent_handle     TEXT    NOT NULL CHECK (agent_handle <> ''),
  conversation_key TEXT    NOT NULL CHECK (conversation_key <> ''),
  work_key         TEXT    NOT NULL,
  turn_id          TEXT    NOT NULL,                   -- empty once trimmed
  entry_id         TEXT    NOT NULL CHECK (entry_id <> ''),
  ordinal          INTEGER NOT NULL CHECK (ordinal > 0),
  version          INTEGER NOT NULL CHECK (version > 0),
  trimmed          INTEGER NOT NULL CHECK (trimmed IN (0, 1)),
  rendered_bytes   INTEGER NOT NULL,                   -- what the entry takes in a block; 0 once trimmed
  entry            BLOB    CHECK ((entry IS NULL) = trimmed),
  checksum         BLOB    CHECK ((checksum IS NULL) = trimmed),
  created_at       INTEGER NOT NULL                    -- seconds since 1970, UTC
) STRICT;

-- The dedupe. It outlives the trim, since a trimmed row keeps its keys. Rows without a work key are distinct rows.
CREATE UNIQUE INDEX conversation_sessions_by_work_key
  ON conversation_sessions (agent_handle, conversation_key, work_key) WHERE work_key <> '';

-- History, trim and the next ordinal are each one seek: kept entries apart from trimmed ones, newest last. With the
-- sizes in it, an Append sees from the index alone which entries no longer fit a block whole.
CREATE INDEX conversation_sessions_by_conversation
  ON conversation_sessions (agent_handle, conversation_key, trimmed, ordinal, rendered_bytes);

-- Forgotten turns, by digest alone: what was erased is not to be read here either.
CREATE TABLE forgotten_turns (
  digest       BLOB    PRIMARY KEY CHECK (length(digest) = 32),
  forgotten_at INTEGER NOT NULL                        -- seconds since 1970, UTC
) STRICT, WITHOUT ROWID;
