-- The sweep finds what is past retention by one seek, however large the store and whatever the clock did meanwhile.
CREATE INDEX conversation_sessions_by_age ON conversation_sessions (created_at);
CREATE INDEX forgotten_turns_by_age ON forgotten_turns (forgotten_at);
