package turnledger

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/metadata"
)

// secondReadShare is the share of the begin deadline that is kept for reading the history again: a read takes milliseconds.
const secondReadShare = 0.1

// Option is how a ledger is made.
type Option func(*options)

type options struct {
	deadlines Deadlines
	log       *slog.Logger
	onEvent   func(Event)
	propagate func(context.Context, metadata.MD)
	rewriter  Rewriter
	atOnce    int
}

// WithDeadlines sets the most that each call may take; what is zero keeps its default.
func WithDeadlines(deadlines Deadlines) Option { return func(o *options) { o.deadlines = deadlines } }

// WithLogger sets where log lines go, none of them with content. The default is [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithEvents sets a hook that is called with each event as it happens. What it panics with is logged.
func WithEvents(onEvent func(Event)) Option { return func(o *options) { o.onEvent = onEvent } }

// WithPropagation sets what each call sends beside its request, to continue the engine's trace. With OpenTelemetry:
//
//	func(ctx context.Context, headers metadata.MD) {
//		otel.GetTextMapPropagator().Inject(ctx, carrier(headers))
//	}
func WithPropagation(propagate func(context.Context, metadata.MD)) Option {
	return func(o *options) { o.propagate = propagate }
}

// WithRewriter has the sidecar's orders filled with the seat's auxiliary model, atOnce calls at a time (0: three). Without it
// no order is filled, and arguments, errors and older turns stand by size and digest, or by their facts alone.
func WithRewriter(rewriter Rewriter, atOnce int) Option {
	return func(o *options) { o.rewriter, o.atOnce = rewriter, atOnce }
}

// Ledger is a node's sidecar, as an engine sees it. One serves all seats of a process.
type Ledger struct {
	asker    *asker
	reporter *reporter
	filler   *filler // nil where the engine gave no rewriter
}

// New makes a ledger; close it. Nothing is dialled before the first call, so this neither waits for the sidecar nor fails
// without it. The target is "unix:///path", "unix:path" or "host:port". The error wraps [ErrArgument].
func New(target string, with ...Option) (*Ledger, error) {
	chosen := options{log: slog.Default(), atOnce: rewritesAtOnce}
	for _, option := range with {
		option(&chosen)
	}
	deadlines, err := chosen.deadlines.checked()
	if err != nil {
		return nil, err
	}
	if chosen.atOnce == 0 {
		chosen.atOnce = rewritesAtOnce
	}
	if chosen.atOnce < 0 {
		return nil, badArgument("rewrites at once must be 1 or more, not %d", chosen.atOnce)
	}
	conn, err := dial(target)
	if err != nil {
		return nil, err
	}
	report := &reporter{log: chosen.log, onEvent: chosen.onEvent}
	closing, stop := context.WithCancel(context.Background())
	ask := &asker{
		conn: conn, deadlines: deadlines, patience: patience{full: deadlines.UserMessage}, reporter: report,
		propagate: chosen.propagate, closing: closing, close: stop,
	}
	ledger := &Ledger{asker: ask, reporter: report}
	if chosen.rewriter != nil {
		ledger.filler = newFiller(ask, report, chosen.rewriter, chosen.atOnce)
	}
	return ledger, nil
}

// Stats is what this ledger did so far.
func (l *Ledger) Stats() Stats { return l.reporter.snapshot() }

// Beginning is what begins a turn.
type Beginning struct {
	Keys
	// HardLimitBytes is the most bytes that the model can take as a block, at least 4096; 0 for no limit.
	HardLimitBytes uint64
	// WaitForNotes waits, within Deadlines.Begin, for the notes of older turns that the block lacks, and reads it once more
	// then. Else they are made behind the turn, for the next one.
	WaitForNotes bool
}

// Begin reads the conversation's history, once, and freezes it. Call it when the turn starts, not before.
//
// It fails open: a history that cannot be read leaves Turn.History nil and the reason in Turn.ReadFailure. The error is the
// context's own.
func (l *Ledger) Begin(ctx context.Context, given Beginning) (*Turn, error) {
	began := time.Now()
	keys := l.mended(given.Keys)
	ask := historyCall(keys, given.HardLimitBytes)
	answer, failure, _, err := persist(ctx, l.asker, ask, l.asker.deadlines.Begin, whileItAnswers)
	if err != nil {
		return nil, err
	}
	if failure == nil && l.filler != nil && len(answer.orders) > 0 {
		jobs := l.filler.start(ctx, keys, answer.orders, given.WaitForNotes)
		if given.WaitForNotes {
			if answer, err = l.withNotes(ctx, ask, answer, jobs, began.Add(l.asker.deadlines.Begin)); err != nil {
				return nil, err
			}
		}
	}
	event := HistoryRead{Keys: keys, Failure: failure, Took: time.Since(began)}
	start := opening{keys: keys, readFailure: failure}
	if failure == nil {
		start.history, start.alreadyRecorded = answer.history, answer.alreadyRecorded
		event.State, event.Bytes, event.AlreadyRecorded = answer.history.State, answer.history.Bytes, answer.alreadyRecorded
	}
	l.reporter.read(event)
	return newTurn(l, start), nil
}

// withNotes is the history with the notes that were made in time; the first one where there are none, or none can be had.
func (l *Ledger) withNotes(
	ctx context.Context, ask call[historyAnswer], first historyAnswer, jobs []*job, until time.Time,
) (historyAnswer, error) {
	kept := time.Duration(float64(l.asker.deadlines.Begin) * secondReadShare)
	last := time.After(max(time.Until(until.Add(-kept)), 0))
	changed := false
waiting:
	for _, each := range jobs {
		select {
		case <-each.done:
			changed = changed || each.changed
		case <-last:
			break waiting
		case <-ctx.Done():
			return first, ctx.Err()
		}
	}
	for _, each := range jobs {
		select {
		case <-each.done:
			changed = changed || each.changed
		default:
		}
	}
	if !changed {
		return first, nil
	}
	again, failure, err := once(ctx, l.asker, ask, max(time.Until(until), 0))
	if err != nil || failure != nil {
		return first, err
	}
	return again, nil
}

// Resume is the turn that [Turn.Save] wrote, in whatever language, on this ledger's sidecar: same keys, same frozen block,
// rounds counted on. The error wraps [ErrInvalidSavedTurn].
func (l *Ledger) Resume(saved string) (*Turn, error) {
	start, err := load(saved)
	if err != nil {
		return nil, err
	}
	return newTurn(l, start), nil
}

// Settle records that a turn's unsent text reached its party after all. One way and idempotent. A failure of the service is in
// the settlement, after the retries that the contract allows; the error is the context's own.
func (l *Ledger) Settle(ctx context.Context, agentHandle, conversationKey, workKey string) (Settlement, error) {
	began := time.Now()
	keys := l.mended(Keys{AgentHandle: agentHandle, ConversationKey: conversationKey, WorkKey: workKey})
	answer, failure, attempts, err := persist(ctx, l.asker, settleCall(keys), l.asker.deadlines.Settle, asTheContractAllows)
	if err != nil {
		return Settlement{}, err
	}
	settlement := Settlement{Failure: failure, Attempts: attempts}
	if failure == nil {
		settlement.Outcome, settlement.EntryID = answer.outcome, answer.entryID
	}
	l.reporter.settled(TurnSettled{settlement, time.Since(began)})
	return settlement, nil
}

// Forget erases one turn, a seat's conversation, or all of a seat. The error is a [*ServiceError] where the sidecar did not say
// that it is done: an erasure that silently did not happen is the worst of all answers.
func (l *Ledger) Forget(ctx context.Context, scope Scope) (Forgotten, error) {
	if scope.kind == "" {
		return Forgotten{}, badArgument("a scope is made by TurnScope, ConversationScope or SeatScope")
	}
	began := time.Now()
	scope.keys = l.mended(scope.keys)
	answer, failure, _, err := persist(ctx, l.asker, forgetCall(scope), l.asker.deadlines.Forget, asTheContractAllows)
	switch {
	case err != nil:
		return Forgotten{}, err
	case failure != nil:
		l.reporter.forgotten(TurnsForgotten{Failure: failure, Took: time.Since(began)})
		return Forgotten{}, &ServiceError{failure}
	}
	l.reporter.forgotten(TurnsForgotten{Forgotten: &answer, Took: time.Since(began)})
	return answer, nil
}

// Drain waits until no order waits or runs, so long at most, and says whether that came. Nobody needs to: see Close.
func (l *Ledger) Drain(limit time.Duration) bool { return l.filler == nil || l.filler.finish(limit) }

// Close lets the orders end, then the connection go. Calls that are in flight then, and later ones, fail as CLOSED. Orders go
// on for Deadlines.Close at most; what is left is given up and reported as abandoned, with half a second more to notice.
func (l *Ledger) Close() error {
	if l.filler != nil {
		l.filler.close()
	}
	if l.asker.closed.Swap(true) {
		return nil
	}
	l.asker.close()
	return errors.Join(l.asker.conn.Close())
}

func (l *Ledger) mended(keys Keys) Keys {
	m := &mender{}
	mended := m.keys(keys)
	l.reporter.repaired(m)
	return mended
}
