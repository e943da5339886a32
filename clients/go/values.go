package turnledger

import "time"

// Keys are those of one turn. Text that is not valid UTF-8 is repaired, and that is reported.
type Keys struct {
	// AgentHandle is the seat, 1 to 512 bytes.
	AgentHandle string
	// ConversationKey is the conversation's identity, such as "jira:POC-7", 1 to 512 bytes.
	ConversationKey string
	// TurnID names the run, 1 to 256 bytes.
	TurnID string
	// WorkKey is the digest of the turn's constituent trigger ids (see [WorkKey]), at most 256 bytes. Empty: the turn is not
	// recorded.
	WorkKey string
}

// HistoryState is whether there is a block.
type HistoryState string

const (
	// Present: there is one.
	Present HistoryState = "present"
	// Empty: read, and nothing was there.
	Empty HistoryState = "empty"
	// Disabled: the ledger is switched off, and nothing was read.
	Disabled HistoryState = "disabled"
)

// History is the frozen block: the same bytes for every round of its turn, on any sidecar. Counts are entries.
type History struct {
	State HistoryState
	// Text is empty unless State is Present.
	Text string
	// Digest is the SHA-256 of the text's UTF-8 in lower-case hex, Bytes its size.
	Digest string
	Bytes  uint64
	// Shown entries are whole, Condensed ones stand in the account, LeftOut ones had no room in it.
	Shown, Condensed, LeftOut uint32
	NoLongerKept              uint64
	Unreadable                uint32
}

// Phase is the kind of round that a message is for. Only Execute gets the block.
type Phase string

const (
	Execute Phase = "execute"
	Review  Phase = "review"
	Other   Phase = "other"
)

// CallKind is what a tool call could do; it decides what the next turn is told. What is not known is a Write.
type CallKind string

const (
	// Write: changed, or may have changed, something outside; always shown.
	Write CallKind = "write"
	// Read: positively known to change nothing; the first 12 are shown.
	Read CallKind = "read"
	// Meta: discovery and the like; never shown.
	Meta CallKind = "meta"
)

// ToolCall is one tool call of a turn.
type ToolCall struct {
	// Name is the tool's, as the model gave it. Never empty.
	Name string
	// Arguments is the JSON text that the model supplied, and no parsed value: parsing loses digits of numbers.
	Arguments string
	// Kind is what the call could do; empty and unknown ones are a Write.
	Kind CallKind
	// Error is what a failed call reported, which may be empty; nil for a call that succeeded.
	Error *string
	// Sensitive are names of top-level arguments whose values are never stored nor shown.
	Sensitive []string
}

// Text is a pointer to the text, for fields where an empty text is not the same as none.
func Text(text string) *string { return &text }

// Round is what an engine gives for one round's message. Parts are taken verbatim, and left out if empty.
type Round struct {
	Phase Phase
	// Task is the ask, Context the engine's other blocks, PriorWork what was already done earlier in this turn.
	Task, Context, PriorWork string
	// Iteration is the round's number within its phase, from 1; 0: one more than the last.
	Iteration uint32
	// SystemBytes and ToolBytes are sizes for the event `prompt.size`, if wanted there; nil leaves them out.
	SystemBytes, ToolBytes *uint64
}

// Completion is how a turn ended, and what the next turn is told of it.
type Completion struct {
	// Reply is the final text where it reached its party, Unsent where nobody received it. Exactly one is set.
	Reply, Unsent *string
	// Trigger is what started the turn, verbatim; for a merged batch the whole digest.
	Trigger string
	// Intent is the executor's own summary of what it set out to do.
	Intent string
	// Decision is how the turn ended, [a-z_]{1,32}; empty is "done", which the next turn is not told.
	Decision string
	// CompletedWork is the reviewer's prose on what landed, BlockedOn the executor's evidence on a blocked turn.
	CompletedWork, BlockedOn string
	// CompletedAt is when the turn ended; the zero time is now.
	CompletedAt time.Time
	// NoRewrite forbids the seat's rewriter for this turn, as for one that its budget ended.
	NoRewrite bool
}

// Disposition is what became of a turn's entry.
type Disposition string

const (
	// Recorded: written, committed and synced.
	Recorded Disposition = "recorded"
	// Duplicate: this seat, conversation and work key is on disk already: a redelivery, or a try whose answer was lost.
	Duplicate Disposition = "duplicate"
	// Skipped: not for the ledger; see the skip reason.
	Skipped Disposition = "skipped"
)

// Receipt is what became of a turn. Exactly one of Disposition and Failure is set.
type Receipt struct {
	Disposition Disposition
	// SkipReason goes with Skipped: disabled, run_crashed, run_suspended, not_reproducible, no_work_key or forgotten; empty
	// where the sidecar is newer than this library.
	SkipReason string
	// EntryID is empty and Ordinal (the entry's place in its conversation, from 1) is 0 unless it is in the ledger.
	EntryID string
	Ordinal uint64
	Failure *Failure
	// Attempts counts the tries.
	Attempts int
}

// InLedger is whether the entry is known to be on disk.
func (r Receipt) InLedger() bool { return r.Disposition == Recorded || r.Disposition == Duplicate }

// Settlement is what became of a settle. Outcome is settled, already_reply, not_found or no_longer_kept, empty with a Failure.
type Settlement struct {
	Outcome  string
	EntryID  string
	Failure  *Failure
	Attempts int
}

// Scope is what a forget erases: a seat's one turn, its conversation, or all of it. Make it with one of the functions.
type Scope struct {
	kind string
	keys Keys
}

// TurnScope is one turn of one seat.
func TurnScope(agentHandle, conversationKey, workKey string) Scope {
	return Scope{"turn", Keys{AgentHandle: agentHandle, ConversationKey: conversationKey, WorkKey: workKey}}
}

// ConversationScope is a seat's side of one conversation.
func ConversationScope(agentHandle, conversationKey string) Scope {
	return Scope{"conversation", Keys{AgentHandle: agentHandle, ConversationKey: conversationKey}}
}

// SeatScope is all of a seat, in all conversations.
func SeatScope(agentHandle string) Scope { return Scope{"seat", Keys{AgentHandle: agentHandle}} }

// Forgotten is how many turns a forget erased, and whether their text is gone from the files ("complete") or waits for a
// reader ("pending"). After a try whose answer was lost the count is that of the last try.
type Forgotten struct {
	Forgotten uint64
	Erasure   string
}
