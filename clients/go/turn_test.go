package turnledger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	turnledger "github.com/turnledger/turnledger/clients/go"
	"google.golang.org/grpc/metadata"
)

var silent = turnledger.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

func open(t *testing.T, target string, with ...turnledger.Option) *turnledger.Ledger {
	t.Helper()
	ledger, err := turnledger.New(target, append([]turnledger.Option{silent}, with...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	return ledger
}

func begin(t *testing.T, ledger *turnledger.Ledger, number int) *turnledger.Turn {
	t.Helper()
	turn, err := ledger.Begin(t.Context(), turnledger.Beginning{Keys: turnledger.Keys{
		AgentHandle: "support", ConversationKey: "jira:POC-7", TurnID: fmt.Sprintf("run-%08d", number),
		WorkKey: fmt.Sprintf("w%d", number),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func complete(t *testing.T, turn *turnledger.Turn, reply string) turnledger.Receipt {
	t.Helper()
	receipt, err := turn.Complete(t.Context(), turnledger.Completion{Reply: turnledger.Text(reply), Trigger: "Where is it?"})
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// A turn is recorded, and the next one of its conversation is told of it; completed again it is a duplicate.
func TestTheNextTurnKnowsTheOneBefore(t *testing.T) {
	ledger := open(t, newSidecar(t).target)
	first := begin(t, ledger, 1)
	if first.History == nil || first.History.State != turnledger.Empty {
		t.Fatalf("a new conversation is empty, not %+v %v", first.History, first.ReadFailure)
	}
	first.Called(turnledger.ToolCall{Name: "get_order", Arguments: `{"id": 12345678901234567890}`, Kind: turnledger.Read})
	if receipt := complete(t, first, "It ships on Friday."); receipt.Disposition != turnledger.Recorded || receipt.Ordinal != 1 {
		t.Fatalf("%+v", receipt)
	}
	if receipt := complete(t, first, "again"); receipt.Disposition != turnledger.Duplicate {
		t.Fatalf("%+v", receipt)
	}
	second := begin(t, ledger, 2)
	prompt, err := second.UserMessage(t.Context(), turnledger.Round{Phase: turnledger.Execute, Task: "And now?"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"It ships on Friday.", "12345678901234567890", "## Task\n\nAnd now?"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	if again := begin(t, ledger, 1); !again.AlreadyRecorded {
		t.Error("a redelivery is not told")
	}
}

// Whatever becomes of the sidecar after a turn began, its rounds have the same bytes, and a restarted one takes the turn.
func TestRoundsSurviveTheSidecar(t *testing.T) {
	s := newSidecar(t)
	ledger := open(t, s.target)
	complete(t, begin(t, ledger, 1), "Earlier.")
	turn := begin(t, ledger, 2)
	round := turnledger.Round{Phase: turnledger.Execute, Task: "Go on.", Iteration: 1}
	before, err := turn.UserMessage(t.Context(), round)
	if err != nil {
		t.Fatal(err)
	}
	s.end(syscall.SIGKILL)
	after, err := turn.UserMessage(t.Context(), round)
	if err != nil || after != before {
		t.Fatalf("the round changed: %v", err)
	}
	saved := turn.Save()
	back := make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(500 * time.Millisecond)
		s.start()
	}()
	defer func() { <-back }()
	resumed, err := ledger.Resume(saved)
	if err != nil {
		t.Fatal(err)
	}
	if receipt := complete(t, resumed, "Done."); receipt.Disposition != turnledger.Recorded {
		t.Fatalf("%+v", receipt.Failure)
	}
	if stats := ledger.Stats(); stats.ComposedLocally != 1 || stats.Recorded != 2 {
		t.Errorf("%+v", stats)
	}
}

// A sidecar that is not there, and one that accepts and never says a word, cost a turn no more than its deadlines.
func TestFailingOpenIsBounded(t *testing.T) {
	folder := t.TempDir()
	hung, err := net.Listen("unix", filepath.Join(folder, "h"))
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	for name, path := range map[string]string{"dead": "d", "hung": "h"} {
		t.Run(name, func(t *testing.T) {
			ledger := open(t, "unix://"+filepath.Join(folder, path), turnledger.WithDeadlines(turnledger.Deadlines{
				Begin: 300 * time.Millisecond, UserMessage: 100 * time.Millisecond, Complete: 300 * time.Millisecond,
			}))
			began := time.Now()
			turn := begin(t, ledger, 1)
			if turn.History != nil || turn.ReadFailure == nil {
				t.Fatal("an unread history is not told")
			}
			prompt, err := turn.UserMessage(t.Context(), turnledger.Round{Phase: turnledger.Execute, Task: "Go on."})
			if err != nil || prompt != "## Task\n\nGo on." {
				t.Fatalf("%q %v", prompt, err)
			}
			if receipt := complete(t, turn, "x"); receipt.Failure == nil || receipt.InLedger() {
				t.Fatalf("%+v", receipt)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A context that ends is the caller's own error, at once, and no failure of the service.
func TestAContextEnds(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "h"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ledger := open(t, "unix://"+listener.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := ledger.Begin(ctx, turnledger.Beginning{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if time.Since(began) > time.Second {
		t.Error("it was not at once")
	}
}

// Orders are filled behind the turn, a few at a time, and the next block shows what came; the trace goes with every call.
func TestOrdersAreFilled(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	rewriter := func(_ context.Context, order turnledger.Order) (turnledger.Rewrite, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
		return turnledger.Rewrite{Text: "the parcel was scanned", PromptTokens: 5}, nil
	}
	propagated := 0
	ledger := open(t, newSidecar(t).target, turnledger.WithRewriter(rewriter, 2),
		turnledger.WithPropagation(func(_ context.Context, headers metadata.MD) {
			mu.Lock()
			defer mu.Unlock()
			propagated++
			headers.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		}))
	turn := begin(t, ledger, 1)
	for number := range 5 {
		long := strings.Repeat(fmt.Sprintf("the parcel was scanned at depot %d ", number), 20)
		turn.Called(turnledger.ToolCall{Name: "note", Arguments: fmt.Sprintf(`{"text": %q}`, long)})
	}
	complete(t, turn, "Done.")
	if !ledger.Drain(10 * time.Second) {
		t.Fatal("the orders do not end")
	}
	if stats := ledger.Stats(); stats.OrdersAccepted != 5 || stats.RewriterCalls != 5 || stats.RewriterPromptTokens != 25 {
		t.Errorf("%+v", stats)
	}
	if most > 2 || propagated < 7 {
		t.Errorf("at once %d, propagated %d", most, propagated)
	}
	if next := begin(t, ledger, 2); strings.Count(next.History.Text, "(condensed) ") != 5 {
		t.Error("the next block does not show the rewrites")
	}
}

// A rewriter that hangs, panics or has no budget reaches no turn, and holds up Close for no longer than it says.
func TestABadRewriterCostsNothing(t *testing.T) {
	s := newSidecar(t)
	bad := map[string]turnledger.Rewriter{
		"hangs": func(context.Context, turnledger.Order) (turnledger.Rewrite, error) {
			time.Sleep(5 * time.Second)
			return turnledger.Rewrite{}, nil
		},
		"panics": func(context.Context, turnledger.Order) (turnledger.Rewrite, error) { panic("x") },
		"no budget": func(context.Context, turnledger.Order) (turnledger.Rewrite, error) {
			return turnledger.Rewrite{}, turnledger.ErrNoBudget
		},
	}
	number := 100
	for name, rewriter := range bad {
		number++
		t.Run(name, func(t *testing.T) {
			ledger := open(t, s.target, turnledger.WithRewriter(rewriter, 1),
				turnledger.WithDeadlines(turnledger.Deadlines{Close: 200 * time.Millisecond}))
			turn := begin(t, ledger, number)
			turn.Called(turnledger.ToolCall{Name: "note", Arguments: fmt.Sprintf(`{"text": %q}`, strings.Repeat(name, 300))})
			if receipt := complete(t, turn, "Done."); !receipt.InLedger() {
				t.Fatalf("%+v", receipt)
			}
			began := time.Now()
			_ = ledger.Close()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("Close took %v", took)
			}
			if stats := ledger.Stats(); stats.OrdersAccepted != 0 || stats.OrdersAbandoned+stats.OrdersError+stats.OrdersNoBudget != 1 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// After Close calls fail as CLOSED, and no goroutine of the ledger is left.
func TestNothingIsLeftBehind(t *testing.T) {
	s := newSidecar(t)
	before := runtime.NumGoroutine()
	for range 20 {
		ledger := open(t, s.target)
		begin(t, ledger, 1)
		_ = ledger.Close()
		if turn := begin(t, ledger, 2); turn.ReadFailure == nil || turn.ReadFailure.Reason != turnledger.ReasonClosed {
			t.Fatalf("%v", turn.ReadFailure)
		}
	}
	for until := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}

// Many goroutines may use one ledger and one turn at once; each turn is recorded once.
func TestManyAtOnce(t *testing.T) {
	ledger := open(t, newSidecar(t).target)
	var all sync.WaitGroup
	for number := range 32 {
		all.Add(1)
		go func() {
			defer all.Done()
			turn := begin(t, ledger, number%16)
			turn.Called(turnledger.ToolCall{Name: "look", Arguments: "{}"})
			_, _ = turn.UserMessage(t.Context(), turnledger.Round{Phase: turnledger.Review, Task: "x"})
			complete(t, turn, "Done.")
		}()
	}
	all.Wait()
	if stats := ledger.Stats(); stats.Recorded != 16 || stats.Duplicates != 16 {
		t.Errorf("%+v", stats)
	}
}

// What an engine gives wrongly is an error that says so; a forget that did not happen is one too.
func TestErrors(t *testing.T) {
	for _, target := range []string{"", "/run/s.sock", "unix:", "unix:///", "host", "host:x"} {
		if _, err := turnledger.New(target); !errors.Is(err, turnledger.ErrArgument) {
			t.Errorf("%q: %v", target, err)
		}
	}
	ledger := open(t, "unix:///no/such/socket", turnledger.WithDeadlines(turnledger.Deadlines{Forget: 200 * time.Millisecond}))
	var service *turnledger.ServiceError
	if _, err := ledger.Forget(t.Context(), turnledger.SeatScope("support")); !errors.As(err, &service) {
		t.Errorf("%v", err)
	}
	if _, err := ledger.Forget(t.Context(), turnledger.Scope{}); !errors.Is(err, turnledger.ErrArgument) {
		t.Errorf("%v", err)
	}
	if _, err := ledger.Resume("{}"); !errors.Is(err, turnledger.ErrInvalidSavedTurn) {
		t.Errorf("%v", err)
	}
	turn := begin(t, ledger, 1)
	if _, err := turn.UserMessage(t.Context(), turnledger.Round{Phase: "think"}); !errors.Is(err, turnledger.ErrArgument) {
		t.Errorf("%v", err)
	}
	if _, err := turn.Complete(t.Context(), turnledger.Completion{}); !errors.Is(err, turnledger.ErrArgument) {
		t.Errorf("%v", err)
	}
}
