package turnledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What became of an order.
const (
	outcomeAccepted  = "accepted"
	outcomeRejected  = "rejected"
	outcomeError     = "error"
	outcomeNoBudget  = "no_budget"
	outcomeDeadline  = "deadline"
	outcomeNotSent   = "not_sent"
	outcomeAbandoned = "abandoned"
)

// ErrNoBudget is returned by a rewriter whose seat's budget or gate allows no more now. No further order of the batch is run.
var ErrNoBudget = errors.New("turnledger: no budget")

// Order is one call of the rewriter: a text that may become shorter, and everything that a model needs to be told.
type Order struct {
	// ID names the order. Opaque.
	ID string
	// Kind is what is to be rewritten: "argument", "error", or "note" for the words of the account for one entry.
	Kind string
	// Text is what is to be rewritten, at most 64 KiB; LimitBytes the most that the rewrite may have, in UTF-8.
	Text       string
	LimitBytes uint32
	// AgentHandle is the seat, whose auxiliary model and budget these are.
	AgentHandle string
	// Prompt is for the model: instructions, text and closing, put together as they are.
	Prompt string
	// Remark says why the first attempt was rejected, one sentence to follow the prompt; empty on the first.
	Remark string
	// Attempt is 1, or 2 for the one retry after a rejection.
	Attempt int
	// Rejection is the verdict on the first attempt, OverByBytes how much it was over the limit; empty and 0 on the first.
	Rejection   string
	OverByBytes uint32
}

// Rewrite is what the model made of an order's text, and the tokens that it took, if it said so.
type Rewrite struct {
	Text                           string
	PromptTokens, CompletionTokens int
}

// Rewriter is the one function that an engine gives: from an order to a rewrite. It owns the model, the key and the budget. The
// context ends when its time is over or the ledger gives up; a call that goes on all the same keeps its place among those at
// once. ErrNoBudget ends its batch; whatever else it returns is reported and never reaches a turn.
type Rewriter func(ctx context.Context, order Order) (Rewrite, error)

type issuedOrder struct {
	id, kind, text        string
	limitBytes            uint32
	instructions, closing string
}

// remark is what a second try is told, if it may mend the verdict; the others say that the order is over.
func remark(verdict string, over uint32) (string, bool) {
	switch verdict {
	case "too_long":
		return fmt.Sprintf("The answer before this one was %d bytes too long. Write a shorter one.", over), true
	case "empty":
		return "The answer before this one was empty.", true
	case "echo":
		return "The answer before this one repeated these instructions. Write the shorter text alone.", true
	case "invented":
		return "The answer before this one held an identifier, number, link or name that the text lacks.", true
	case "invalid_text":
		return "The answer before this one held characters that are not plain text.", true
	}
	return "", false
}

// attempt is the order as the rewriter gets it: the first time, or after a rejection.
func (issued issuedOrder) attempt(agentHandle string, rejected *fitAnswer) Order {
	order := Order{
		ID: issued.id, Kind: issued.kind, Text: issued.text, LimitBytes: issued.limitBytes, AgentHandle: agentHandle,
		Prompt: issued.instructions + issued.text + issued.closing, Attempt: 1,
	}
	if rejected != nil {
		order.Attempt, order.Rejection, order.OverByBytes = 2, rejected.verdict, rejected.overByBytes
		order.Remark, _ = remark(rejected.verdict, rejected.overByBytes)
	}
	return order
}

// job is an order on its way.
type job struct {
	ctx   context.Context // the turn's, without its end
	keys  Keys
	order issuedOrder
	until time.Time
	batch *batch
	done  chan struct{}
	// changed is whether a rewrite of it stands in the next block: this one, or one that came before. Set before done.
	changed bool
}

// name is what makes it this order and no other.
func (j *job) name() [3]string {
	return [3]string{j.keys.AgentHandle, j.keys.ConversationKey, j.order.id}
}
