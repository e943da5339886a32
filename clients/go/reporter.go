package turnledger

import (
	"log/slog"
	"strings"
)

// reporter is the one place that logs, counts and calls the engine's hook, and never with text of an entry or of a prompt.
type reporter struct {
	counters
	log     *slog.Logger
	onEvent func(Event)
}

func (r *reporter) read(event HistoryRead) {
	if event.Failure == nil {
		r.add(func(stats *Stats) { stats.Reads++ })
	} else {
		r.failed(event.Failure, func(stats *Stats) { stats.ReadFailures++ })
		r.log.Warn("turnledger: history could not be read, the turn runs without it", about(event.Keys, event.Failure)...)
	}
	r.tell(event)
}

func (r *reporter) composed(event MessageComposed, warn bool) {
	if event.Failure == nil {
		r.add(func(stats *Stats) { stats.ComposedBySidecar++ })
	} else {
		r.failed(event.Failure, func(stats *Stats) { stats.ComposedLocally++ })
		say := r.log.Debug
		if warn {
			say = r.log.Warn
		}
		say("turnledger: messages of the turn are composed by the client", about(event.Keys, event.Failure)...)
	}
	r.tell(event)
}

func (r *reporter) ended(event TurnEnded) {
	failure := event.Receipt.Failure
	switch {
	case failure == nil:
		r.add(func(stats *Stats) {
			switch event.Receipt.Disposition {
			case Recorded:
				stats.Recorded++
			case Duplicate:
				stats.Duplicates++
			case Skipped:
				stats.Skipped++
			}
		})
	case event.RunEnd == "completed":
		r.failed(failure, func(stats *Stats) { stats.WriteFailures++ })
		details := append(about(event.Keys, failure), "attempts", event.Receipt.Attempts)
		r.log.Warn("turnledger: a turn is not known to be recorded", details...)
	default:
		r.failed(failure, func(stats *Stats) { stats.RunEndFailures++ })
		r.log.Info("turnledger: the sidecar did not hear that a run ended", about(event.Keys, failure)...)
	}
	r.tell(event)
}

func (r *reporter) settled(event TurnSettled) {
	if failure := event.Settlement.Failure; failure == nil {
		r.add(func(stats *Stats) { stats.Settled++ })
	} else {
		r.failed(failure, func(stats *Stats) { stats.SettleFailures++ })
		r.log.Warn("turnledger: a turn could not be settled", "failure", failure.String())
	}
	r.tell(event)
}

func (r *reporter) forgotten(event TurnsForgotten) {
	if event.Failure == nil {
		r.add(func(stats *Stats) { stats.Forgotten += int(event.Forgotten.Forgotten) })
	} else {
		r.failed(event.Failure, func(stats *Stats) { stats.ForgetFailures++ })
	}
	r.tell(event)
}

func (r *reporter) filled(event OrderFilled) {
	count := func(stats *Stats) {
		stats.RewriterCalls += event.Calls
		stats.RewriterPromptTokens += event.PromptTokens
		stats.RewriterCompletionTokens += event.CompletionTokens
		switch event.Outcome {
		case outcomeAccepted:
			stats.OrdersAccepted++
		case outcomeRejected:
			stats.OrdersRejected++
		case outcomeError:
			stats.OrdersError++
		case outcomeNoBudget:
			stats.OrdersNoBudget++
		case outcomeDeadline:
			stats.OrdersDeadline++
		case outcomeNotSent:
			stats.OrdersNotSent++
		default:
			stats.OrdersAbandoned++
		}
	}
	details := []any{"kind", event.Kind, "agent_handle", event.Keys.AgentHandle, "outcome", event.Outcome, "calls", event.Calls}
	if event.Failure == nil {
		r.add(count)
	} else {
		r.failed(event.Failure, count)
		details = append(details, "failure", event.Failure.String())
	}
	say := r.log.Debug
	if event.Outcome == outcomeError || event.Outcome == outcomeNotSent {
		say = r.log.Warn
	}
	say("turnledger: a rewrite ended", details...)
	r.tell(event)
}

func (r *reporter) repaired(m *mender) {
	if m.replaced == 0 {
		return
	}
	r.add(func(stats *Stats) { stats.Repaired += m.replaced })
	r.log.Warn("turnledger: text became U+FFFD where it was no valid UTF-8", "fields", strings.Join(m.fields, ", "))
	r.tell(TextRepaired{Fields: m.fields, Replaced: m.replaced})
}

// tell calls the hook. One that panics must not cost a turn.
func (r *reporter) tell(event Event) {
	if r.onEvent == nil {
		return
	}
	defer func() {
		if recover() != nil {
			r.log.Warn("turnledger: the event hook panicked")
		}
	}()
	r.onEvent(event)
}

func about(keys Keys, failure *Failure) []any {
	return []any{"turn_id", keys.TurnID, "agent_handle", keys.AgentHandle, "failure", failure.String()}
}
