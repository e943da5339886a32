package main

import (
	"context"
	"errors"
	"sync"
	"time"

	turnledger "github.com/turnledger/turnledger/clients/go"
)

// scripted gives a case's answers in order, the last one from then on, and remembers what it was asked.
type scripted struct {
	mu      sync.Mutex
	answers []any
	calls   []object
	running int
	most    int
}

func (s *scripted) rewrite(ctx context.Context, order turnledger.Order) (turnledger.Rewrite, error) {
	said := s.asked(order)
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if wait := seconds(said["after"]); wait > 0 || said["hang"] == true {
		if said["hang"] == true {
			wait = time.Hour
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return turnledger.Rewrite{}, ctx.Err()
		}
	}
	switch {
	case said["no_budget"] == true:
		return turnledger.Rewrite{}, turnledger.ErrNoBudget
	case said["error"] == true:
		return turnledger.Rewrite{}, errors.New("the model failed")
	}
	return turnledger.Rewrite{Text: text(said["text"])}, nil
}

func (s *scripted) asked(order turnledger.Order) command {
	s.mu.Lock()
	defer s.mu.Unlock()
	said, _ := s.answers[min(len(s.calls), len(s.answers)-1)].(map[string]any)
	s.calls = append(s.calls, object{
		"kind": order.Kind, "text": shown(order.Text), "limit_bytes": order.LimitBytes, "agent_handle": order.AgentHandle,
		"attempt": order.Attempt, "rejection": orNull(order.Rejection), "over_by_bytes": order.OverByBytes,
	})
	s.running++
	s.most = max(s.most, s.running)
	return said
}

func (s *scripted) told() any {
	if s == nil {
		return object{"calls": []object{}, "most_at_once": 0}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return object{"calls": append([]object{}, s.calls...), "most_at_once": s.most}
}
