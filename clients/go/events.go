package turnledger

import "time"

// Event is what a ledger tells its engine as it happens, for metrics: one of the types below. None carries text of an entry or
// of a prompt. It reaches the one hook on the goroutine that caused it.
type Event interface{ event() }

// HistoryRead is a turn that began. Exactly one of State and Failure is set; Bytes is the block's size.
type HistoryRead struct {
	Keys            Keys
	State           HistoryState
	Bytes           uint64
	AlreadyRecorded bool
	Failure         *Failure
	Took            time.Duration
}

// MessageComposed is a round that has its message. Failure says why the client composed it by itself; without one the sidecar
// did, and tells of the round by its own `prompt.size`.
type MessageComposed struct {
	Keys                   Keys
	Phase                  Phase
	Iteration              uint32
	Size                   PromptSize
	SystemBytes, ToolBytes *uint64
	Failure                *Failure
	Took                   time.Duration
}

// TurnEnded is a turn that completed, or whose run was suspended or crashed (RunEnd).
type TurnEnded struct {
	Keys    Keys
	RunEnd  string
	Receipt Receipt
	Took    time.Duration
}

// TurnSettled is a settle that was asked for.
type TurnSettled struct {
	Settlement Settlement
	Took       time.Duration
}

// TurnsForgotten is a forget that was asked for. Exactly one of Forgotten and Failure is set.
type TurnsForgotten struct {
	Forgotten *Forgotten
	Failure   *Failure
	Took      time.Duration
}

// TextRepaired is text that was no valid UTF-8: so many places became U+FFFD in the named fields.
type TextRepaired struct {
	Fields   []string
	Replaced int
}

// OrderFilled is an order that is over. Outcome is accepted, rejected, error, no_budget, deadline, not_sent or abandoned; Verdict
// the sidecar's last one. Calls of the rewriter were made (0 to 2), and took so many tokens.
type OrderFilled struct {
	Keys                           Keys
	OrderID, Kind                  string
	Outcome, Verdict               string
	Calls                          int
	PromptTokens, CompletionTokens int
	Failure                        *Failure
	Took                           time.Duration
}

func (HistoryRead) event()     {}
func (MessageComposed) event() {}
func (TurnEnded) event()       {}
func (TurnSettled) event()     {}
func (TurnsForgotten) event()  {}
func (TextRepaired) event()    {}
func (OrderFilled) event()     {}
