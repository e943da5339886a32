package turnledger

import "sync"

// Stats counts what a ledger did since it was made: calls of the engine, not tries on the wire, unless it says otherwise.
type Stats struct {
	// Reads are turns that began with an answer, ReadFailures those that began without one.
	Reads, ReadFailures int
	// ComposedBySidecar and ComposedLocally are rounds, by who composed them.
	ComposedBySidecar, ComposedLocally int
	// Turns: written by this call, there already, not for the ledger, and lost to a failure.
	Recorded, Duplicates, Skipped, WriteFailures int
	// RunEndFailures are runs whose suspension or crash the sidecar did not hear of.
	RunEndFailures            int
	Settled, SettleFailures   int
	Forgotten, ForgetFailures int
	OrdersAccepted            int
	OrdersRejected            int
	OrdersError               int
	OrdersNoBudget            int
	OrdersDeadline            int
	OrdersNotSent             int
	OrdersAbandoned           int
	RewriterCalls             int
	RewriterPromptTokens      int
	RewriterCompletionTokens  int
	// TooLarge are all failures over the message limit.
	TooLarge int
	// Retries are tries on the wire after the first.
	Retries int
	// Repaired are places that became U+FFFD, since they were no valid UTF-8.
	Repaired int
}

type counters struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counters) add(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// failed is a change that came of a failure, counted by its reason too.
func (c *counters) failed(failure *Failure, change func(*Stats)) {
	c.add(func(stats *Stats) {
		change(stats)
		if failure.Reason == ReasonTooLarge {
			stats.TooLarge++
		}
	})
}

func (c *counters) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}
