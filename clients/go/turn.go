package turnledger

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Turn is one turn, from its frozen history to its receipt. [Ledger.Begin] and [Ledger.Resume] make it.
type Turn struct {
	// Keys are the turn's, as they are sent: valid UTF-8.
	Keys Keys
	// History is the frozen one; nil if it could not be read, which ReadFailure then explains.
	History     *History
	ReadFailure *Failure
	// AlreadyRecorded is whether this work key was in the ledger when the turn began: a redelivery, which need not answer twice.
	// False too if the history could not be read.
	AlreadyRecorded bool

	ledger     *Ledger
	mu         sync.Mutex
	iterations map[Phase]uint32
	calls      []recordedCall
	composed   bool
}

func newTurn(ledger *Ledger, start opening) *Turn {
	iterations := map[Phase]uint32{}
	maps.Copy(iterations, start.iterations)
	return &Turn{
		Keys: start.keys, History: start.history, ReadFailure: start.readFailure, AlreadyRecorded: start.alreadyRecorded,
		ledger: ledger, iterations: iterations, calls: slices.Clone(start.calls),
	}
}

// Called collects one tool call for the turn's entry; nothing is sent before Complete.
func (t *Turn) Called(made ToolCall) {
	t.mu.Lock()
	m := &mender{}
	field := fmt.Sprintf("entry.calls[%d]", len(t.calls))
	kept := recordedCall{
		Name: m.mend(field+".name", made.Name), Arguments: m.mend(field+".arguments", made.Arguments), Kind: Write,
	}
	if made.Kind == Read || made.Kind == Meta {
		kept.Kind = made.Kind
	}
	if made.Error != nil {
		kept.Failed, kept.Error = true, m.mend(field+".error", *made.Error)
	}
	for _, name := range made.Sensitive {
		kept.Sensitive = append(kept.Sensitive, m.mend(field+".sensitive", name))
	}
	t.calls = append(t.calls, kept)
	t.mu.Unlock()
	t.ledger.reporter.repaired(m)
}

// UserMessage is one round's user message: the same bytes whether the sidecar answers or not, since they are composed here and
// who answers decides only who accounts for them. Never asked for twice. The error is the context's own, or wraps ErrArgument.
func (t *Turn) UserMessage(ctx context.Context, given Round) (string, error) {
	began := time.Now()
	if _, ok := phases[given.Phase]; !ok {
		return "", badArgument("the phase must be Execute, Review or Other, not %q", given.Phase)
	}
	m := &mender{}
	parts := Parts{
		Context: m.mend("context", given.Context), Task: m.mend("task", given.Task),
		PriorWork: m.mend("prior_work", given.PriorWork),
	}
	var history *History
	if given.Phase == Execute && t.History != nil {
		history, parts.History = t.History, t.History.Text
	}
	iteration, err := t.nextIteration(given)
	if err != nil {
		return "", err
	}
	t.ledger.reporter.repaired(m)
	message, asker := Compose(parts), t.ledger.asker
	answer, failure, err := once(ctx, asker, messageCall(t.Keys, history, given, iteration, parts), asker.patience.wait())
	if err != nil {
		return "", err
	}
	if failure == nil && answer != message {
		failure = &Failure{Code: "OK", Reason: ReasonBadAnswer, Message: "the sidecar composed other bytes"}
	}
	t.ledger.reporter.composed(MessageComposed{
		Keys: t.Keys, Phase: given.Phase, Iteration: iteration, Size: promptSize(message, parts),
		SystemBytes: given.SystemBytes, ToolBytes: given.ToolBytes, Failure: failure, Took: time.Since(began),
	}, failure != nil && t.firstComposed())
	return message, nil
}

// Complete records the turn, with the calls collected. Call it before the trigger is acknowledged.
//
// A failure of the service is in Receipt.Failure, logged and counted. It may be called again then; an entry that was written
// after all answers Duplicate. The error is the context's own, or wraps ErrArgument.
func (t *Turn) Complete(ctx context.Context, given Completion) (Receipt, error) {
	if (given.Reply == nil) == (given.Unsent == nil) {
		return Receipt{}, badArgument("give Reply or Unsent, and not both")
	}
	m := &mender{}
	material := &entry{completion: Completion{
		Trigger: m.mend("entry.trigger", given.Trigger), Intent: m.mend("entry.intent", given.Intent),
		Decision:      m.mend("entry.decision", given.Decision),
		CompletedWork: m.mend("entry.completed_work", given.CompletedWork),
		BlockedOn:     m.mend("entry.blocked_on", given.BlockedOn), CompletedAt: moment(given.CompletedAt),
	}}
	if given.Decision == "" {
		material.completion.Decision = "done"
	}
	if given.Reply != nil {
		material.reply = Text(m.mend("entry.reply", *given.Reply))
	} else {
		material.unsent = Text(m.mend("entry.unsent", *given.Unsent))
	}
	t.mu.Lock()
	material.calls = slices.Clone(t.calls)
	t.mu.Unlock()
	t.ledger.reporter.repaired(m)
	return t.append(ctx, "completed", material, !given.NoRewrite)
}

// Suspended says that the run is suspended: nothing is recorded, the resumed run (see Save) completes the turn. Tried once.
func (t *Turn) Suspended(ctx context.Context) (Receipt, error) {
	return t.append(ctx, "suspended", nil, false)
}

// Crashed says that the run crashed: nothing is recorded, whoever takes the turn up again completes it. Tried once.
func (t *Turn) Crashed(ctx context.Context) (Receipt, error) {
	return t.append(ctx, "crashed", nil, false)
}

// Save is the turn as text, for the engine's own persisted state: [Ledger.Resume], in any language, gives it back with the same
// frozen bytes. JSON in ASCII with a version. It holds the block and the calls so far, so it is as confidential as the
// conversation; values of sensitive arguments are withheld from it.
func (t *Turn) Save() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return dump(opening{t.Keys, t.History, t.ReadFailure, t.AlreadyRecorded, t.iterations, t.calls})
}

func (t *Turn) append(ctx context.Context, runEnd string, material *entry, rewrite bool) (Receipt, error) {
	began, ledger := time.Now(), t.ledger
	limit, may := ledger.asker.deadlines.RunEnd, rule(never)
	if material != nil {
		limit, may = ledger.asker.deadlines.Complete, asTheContractAllows
	}
	answer, failure, attempts, err := persist(ctx, ledger.asker, appendCall(t.Keys, runEnd, material), limit, may)
	if err != nil {
		return Receipt{}, err
	}
	receipt := Receipt{Failure: failure, Attempts: attempts}
	if failure == nil {
		receipt.Disposition, receipt.SkipReason = answer.disposition, answer.skipReason
		receipt.EntryID, receipt.Ordinal = answer.entryID, answer.ordinal
	}
	ledger.reporter.ended(TurnEnded{t.Keys, runEnd, receipt, time.Since(began)})
	if failure == nil && rewrite && ledger.filler != nil && len(answer.orders) > 0 {
		ledger.filler.start(ctx, t.Keys, answer.orders, false)
	}
	return receipt, nil
}

func (t *Turn) nextIteration(given Round) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	iteration := given.Iteration
	if iteration == 0 {
		if t.iterations[given.Phase] == math.MaxUint32 {
			return 0, badArgument("there are no more than %d rounds", uint32(math.MaxUint32))
		}
		iteration = t.iterations[given.Phase] + 1
	}
	t.iterations[given.Phase] = iteration
	return iteration, nil
}

// firstComposed is whether this is the first round of the turn that the sidecar did not compose.
func (t *Turn) firstComposed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.composed
	t.composed = true
	return first
}
