package turnledger

import (
	"sync"
	"time"
)

// Deadlines are the most that each call may take, retries and the waits between them included.
type Deadlines struct {
	// Begin: somebody waits for the turn to start, and a turn without its history may repeat itself.
	Begin time.Duration
	// UserMessage: every round pays it, and a message composed here has the same bytes.
	UserMessage time.Duration
	// Complete: the turn is over and nobody waits: long enough for a sidecar to restart.
	Complete time.Duration
	// RunEnd: says only that a run was suspended or crashed.
	RunEnd time.Duration
	Settle time.Duration
	// Forget may wait for the writer and for a checkpoint.
	Forget time.Duration
	// Rewrite: from an answer to the last of its orders, waiting, retry and all.
	Rewrite time.Duration
	// Close is what [Ledger.Close] gives the orders that are left.
	Close time.Duration
}

// DefaultDeadlines are those of a ledger that is told no others.
var DefaultDeadlines = Deadlines{
	Begin: 2 * time.Second, UserMessage: 500 * time.Millisecond, Complete: 10 * time.Second,
	RunEnd: 500 * time.Millisecond, Settle: 10 * time.Second, Forget: 10 * time.Second,
	Rewrite: 30 * time.Second, Close: 3 * time.Second,
}

const (
	// While the sidecar is known not to answer, a round waits this long at most: 30 rounds against a hung one then cost two
	// seconds, not fifteen.
	strainedMessage = 50 * time.Millisecond
	// But once in this time a round waits in full again, so that a sidecar that is merely slow is found to be back.
	fullWaitEvery = 30 * time.Second
)

// checked is the deadlines with the defaults where none is given.
func (d Deadlines) checked() (Deadlines, error) {
	defaults := DefaultDeadlines
	for _, pair := range []struct{ given, fallback *time.Duration }{
		{&d.Begin, &defaults.Begin}, {&d.UserMessage, &defaults.UserMessage}, {&d.Complete, &defaults.Complete},
		{&d.RunEnd, &defaults.RunEnd}, {&d.Settle, &defaults.Settle}, {&d.Forget, &defaults.Forget},
		{&d.Rewrite, &defaults.Rewrite}, {&d.Close, &defaults.Close},
	} {
		if *pair.given < 0 {
			return d, badArgument("a deadline must be above 0, not %v", *pair.given)
		}
		if *pair.given == 0 {
			*pair.given = *pair.fallback
		}
	}
	return d, nil
}

// patience is how long a round waits for its message: in full while the sidecar answers, briefly while it is known not to.
// All turns of a ledger share one, so that what one turn learned spares the others.
type patience struct {
	mu           sync.Mutex
	full         time.Duration
	fullWaitFrom time.Time
}

func (p *patience) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fullWaitFrom = time.Time{}
}

func (p *patience) unanswered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fullWaitFrom.IsZero() {
		p.fullWaitFrom = time.Now().Add(fullWaitEvery)
	}
}

func (p *patience) wait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.fullWaitFrom.IsZero() {
		return p.full
	}
	if !now.Before(p.fullWaitFrom) {
		p.fullWaitFrom = now.Add(fullWaitEvery)
		return p.full
	}
	return min(p.full, strainedMessage)
}
