package turnledger

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A turn's handful of orders is done in two or three rounds, and a provider's limit on a seat's small model is not met by its
	// bookkeeping.
	rewritesAtOnce = 3
	// A rewrite that came in time is paid for: handing it in gets at least this long.
	fitTime = time.Second
	// With less left than this no model answers.
	shortestCall = 50 * time.Millisecond
	// An order whose call failed is let be for so long: a model that fails on it again and again would be paid each time.
	restTime = 10 * time.Minute
	// What is given up gets this long to notice.
	noticeTime = 500 * time.Millisecond
	// Orders that may wait: 64 MiB of text at most, and minutes of work for a few calls at a time.
	waitingOrders = 1_000
	// Orders remembered as failed, so that not every later turn pays for the same failure again.
	restingOrders = 10_000
)

// batch is the orders of one answer. It ends with the first of them that finds no budget.
type batch struct{ broke atomic.Bool }

// filler fills the orders of one ledger through its rewriter, a few at a time, and never at a turn's cost.
type filler struct {
	asker    *asker
	reporter *reporter
	rewriter Rewriter
	limit    int
	places   chan struct{}
	givenUp  context.Context
	giveUp   context.CancelFunc

	mu      sync.Mutex
	waiting []*job
	open    map[[3]string]*job
	resting map[[3]string]time.Time
	rested  [][3]string // the names in resting, oldest first
	workers int
	idle    chan struct{} // closed while no worker runs
	closed  bool
}

func newFiller(a *asker, r *reporter, rewriter Rewriter, atOnce int) *filler {
	idle := make(chan struct{})
	close(idle)
	givenUp, giveUp := context.WithCancel(context.Background())
	return &filler{
		asker: a, reporter: r, rewriter: rewriter, limit: atOnce, places: make(chan struct{}, atOnce),
		givenUp: givenUp, giveUp: giveUp, open: map[[3]string]*job{}, resting: map[[3]string]time.Time{}, idle: idle,
	}
}

// start has the orders filled in the background, urgent ones before others, and gives the jobs to wait for.
func (f *filler) start(ctx context.Context, keys Keys, orders []issuedOrder, urgent bool) []*job {
	now, shared := time.Now(), &batch{}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	var followed, fresh, crowded []*job
	for _, order := range orders {
		each := &job{
			ctx: context.WithoutCancel(ctx), keys: keys, order: order, until: now.Add(f.asker.deadlines.Rewrite),
			batch: shared, done: make(chan struct{}),
		}
		rest, resting := f.resting[each.name()]
		switch known := f.open[each.name()]; {
		case known != nil:
			followed = append(followed, known)
		case len(f.waiting)+len(fresh) >= waitingOrders:
			crowded = append(crowded, each)
		case resting && (rest.IsZero() || rest.After(now)):
		default:
			f.open[each.name()] = each
			fresh = append(fresh, each)
		}
	}
	if urgent {
		f.waiting = append(append([]*job{}, fresh...), f.waiting...)
	} else {
		f.waiting = append(f.waiting, fresh...)
	}
	for range min(f.limit-f.workers, len(fresh)) {
		if f.workers == 0 {
			f.idle = make(chan struct{})
		}
		f.workers++
		go f.work()
	}
	f.mu.Unlock()
	f.abandon(crowded)
	return append(followed, fresh...)
}

// finish waits until no order waits or runs, so long at most, and says whether that came.
func (f *filler) finish(limit time.Duration) bool {
	f.mu.Lock()
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-time.After(limit):
		return false
	}
}

// close takes no further orders, lets the others end in time, then gives up what is left.
func (f *filler) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.finish(f.asker.deadlines.Close)
	f.mu.Lock()
	stranded := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	f.abandon(stranded)
	f.giveUp()
	f.finish(noticeTime)
}

// work is one worker: order after order until none waits.
func (f *filler) work() {
	for {
		f.mu.Lock()
		if len(f.waiting) == 0 {
			f.workers--
			if f.workers == 0 {
				close(f.idle)
			}
			f.mu.Unlock()
			return
		}
		next := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.mu.Unlock()
		f.fill(next)
	}
}

// progress is what became of an order so far. It was abandoned unless something else is said.
type progress struct {
	OrderFilled
	hopeless bool // rejected twice
}

func (f *filler) fill(j *job) {
	began := time.Now()
	p := &progress{OrderFilled: OrderFilled{Outcome: outcomeAbandoned}}
	if rejected := f.try(j, nil, p); rejected != nil && !j.batch.broke.Load() && time.Until(j.until) > shortestCall {
		p.hopeless = f.try(j, rejected, p) != nil
	}
	if f.givenUp.Err() != nil && p.Outcome != outcomeAccepted && p.Outcome != outcomeRejected {
		p.Outcome, p.Failure = outcomeAbandoned, nil
	}
	p.Took = time.Since(began)
	f.end(j, p)
}

// try is one call of the rewriter, handed in. It gives what the sidecar said, if that is worth a retry.
func (f *filler) try(j *job, rejected *fitAnswer, p *progress) *fitAnswer {
	rewrite, ok := f.rewrite(j, rejected, p)
	if !ok {
		return nil
	}
	original := j.order.text
	if j.order.kind == "note" {
		original = "" // a note's is the entry, which the sidecar has
	}
	text, _ := repaired(rewrite.Text)
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	defer context.AfterFunc(f.givenUp, cancel)()
	limit := max(time.Until(j.until), fitTime)
	said, failure, _, err := persist(ctx, f.asker, fitCall(j.keys, j.order.id, original, text), limit, asTheContractAllows)
	if err != nil {
		return nil
	}
	if failure != nil {
		p.Outcome, p.Failure = outcomeNotSent, failure
		return nil
	}
	p.Verdict, p.Outcome = said.verdict, outcomeRejected
	if said.verdict == "accepted" {
		p.Outcome = outcomeAccepted
	}
	if _, worthIt := remark(said.verdict, said.overByBytes); worthIt {
		return &said
	}
	return nil
}

// rewrite is what the rewriter made of the order within what is left of its time, if its batch has budget.
func (f *filler) rewrite(j *job, rejected *fitAnswer, p *progress) (Rewrite, bool) {
	p.Outcome = outcomeDeadline
	if j.batch.broke.Load() {
		p.Outcome = outcomeNoBudget
		return Rewrite{}, false
	}
	left := time.Until(j.until)
	if left <= shortestCall {
		return Rewrite{}, false
	}
	ctx, cancel := context.WithDeadline(j.ctx, j.until)
	defer context.AfterFunc(f.givenUp, cancel)()
	select {
	case f.places <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return Rewrite{}, false
	}
	p.Calls++
	type came struct {
		rewrite Rewrite
		err     error
	}
	answer := make(chan came, 1)
	go func() {
		defer func() { <-f.places }()
		defer cancel()
		rewrite, err := f.consult(ctx, j.order.attempt(j.keys.AgentHandle, rejected))
		answer <- came{rewrite, err}
	}()
	select {
	case said := <-answer:
		return f.taken(j, p, said.rewrite, said.err)
	case <-ctx.Done():
		select { // it may have come with the end
		case said := <-answer:
			return f.taken(j, p, said.rewrite, said.err)
		default:
			return Rewrite{}, false
		}
	}
}

// consult calls the engine's function. What it panics with must not reach a turn.
func (f *filler) consult(ctx context.Context, order Order) (rewrite Rewrite, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the rewriter panicked")
		}
	}()
	return f.rewriter(ctx, order)
}

func (f *filler) taken(j *job, p *progress, rewrite Rewrite, err error) (Rewrite, bool) {
	switch {
	case err == nil:
		p.PromptTokens += rewrite.PromptTokens
		p.CompletionTokens += rewrite.CompletionTokens
		return rewrite, true
	case errors.Is(err, ErrNoBudget):
		j.batch.broke.Store(true)
		p.Outcome = outcomeNoBudget
	case errors.Is(err, context.DeadlineExceeded) && time.Until(j.until) <= 0:
	default:
		p.Outcome = outcomeError
	}
	return Rewrite{}, false
}

func (f *filler) abandon(jobs []*job) {
	for _, each := range jobs {
		f.end(each, &progress{OrderFilled: OrderFilled{Outcome: outcomeAbandoned}})
	}
}

// end says that the order is over: whoever waits for it goes on, and it rests a while if it failed, for good if it is hopeless.
func (f *filler) end(j *job, p *progress) {
	p.Keys, p.OrderID, p.Kind = j.keys, j.order.id, j.order.kind
	f.reporter.filled(p.OrderFilled)
	failed := p.Calls > 0 && (p.Outcome == outcomeError || p.Outcome == outcomeDeadline)
	f.mu.Lock()
	delete(f.open, j.name())
	if p.hopeless || failed {
		var rest time.Time
		if !p.hopeless {
			rest = time.Now().Add(restTime)
		}
		if _, known := f.resting[j.name()]; !known {
			f.rested = append(f.rested, j.name())
		}
		f.resting[j.name()] = rest
		if len(f.rested) > restingOrders {
			delete(f.resting, f.rested[0])
			f.rested = f.rested[1:]
		}
	}
	f.mu.Unlock()
	j.changed = p.Verdict == "accepted" || p.Verdict == "not_open"
	close(j.done)
}
