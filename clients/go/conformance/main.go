// The Go client's driver for the language-neutral cases: a command a line on standard input, an answer a line on standard
// output. The protocol stands in tests/conformance/README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"time"

	turnledger "github.com/turnledger/turnledger/clients/go"
)

// driver holds the one ledger that is open, and its turns by name.
type driver struct {
	ledger   *turnledger.Ledger
	rewriter *scripted
	turns    map[string]*turnledger.Turn
}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	d := &driver{turns: map[string]*turnledger.Turn{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 64*1024), 2*1024*1024)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		var c command
		said := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			said["broken"] = err.Error()
		} else {
			said = d.answer(c)
			said["id"] = c["id"]
		}
		encoded, _ := json.Marshal(said)
		fmt.Fprintf(out, "%s\n", encoded)
		out.Flush()
	}
	d.close()
}

func (d *driver) answer(c command) (said map[string]any) {
	defer func() {
		if broken := recover(); broken != nil {
			said = map[string]any{"broken": fmt.Sprint(broken)}
		}
	}()
	ok, err := d.do(context.Background(), c)
	var service *turnledger.ServiceError
	switch {
	case err == nil:
		return map[string]any{"ok": ok}
	case errors.As(err, &service):
		return map[string]any{"failed": failure(service.Failure)}
	case errors.Is(err, turnledger.ErrInvalidSavedTurn):
		return map[string]any{"refused": "saved_turn"}
	case errors.Is(err, turnledger.ErrArgument):
		return map[string]any{"refused": "argument"}
	case errors.Is(err, errUnknown):
		return map[string]any{"refused": "unknown_command"}
	}
	return map[string]any{"broken": err.Error()}
}

var errUnknown = errors.New("unknown command")

func (d *driver) do(ctx context.Context, c command) (any, error) {
	switch c["do"] {
	case "open":
		return object{}, d.open(c)
	case "close":
		d.close()
		return object{}, nil
	case "begin":
		limit, err := c.uint("hard_limit_bytes")
		if err != nil {
			return nil, err
		}
		given := turnledger.Beginning{Keys: c.keys(), WaitForNotes: c["wait_for_notes"] == true}
		if limit != nil {
			given.HardLimitBytes = *limit
		}
		turn, err := d.ledger.Begin(ctx, given)
		return d.began(c, turn, err)
	case "resume":
		turn, err := d.ledger.Resume(c["saved"].(string))
		return d.began(c, turn, err)
	case "called":
		made := turnledger.ToolCall{Name: c.text("name"), Arguments: c.text("arguments"), Sensitive: c.texts("sensitive")}
		kind, _ := c["kind"].(string)
		made.Kind = turnledger.CallKind(kind)
		made.Error = c.optional("error")
		d.turn(c).Called(made)
		return object{}, nil
	case "user_message":
		return d.userMessage(ctx, c)
	case "complete":
		return d.complete(ctx, c)
	case "suspended":
		receipt, err := d.turn(c).Suspended(ctx)
		return receiptOf(receipt), err
	case "crashed":
		receipt, err := d.turn(c).Crashed(ctx)
		return receiptOf(receipt), err
	case "save":
		return object{"saved": d.turn(c).Save()}, nil
	case "settle":
		settlement, err := d.ledger.Settle(ctx, c.text("agent_handle"), c.text("conversation_key"), c.text("work_key"))
		return object{
			"outcome": orNull(settlement.Outcome), "entry_id": settlement.EntryID, "failure": failure(settlement.Failure),
			"attempts": settlement.Attempts,
		}, err
	case "forget":
		forgotten, err := d.ledger.Forget(ctx, c.scope())
		return object{"forgotten": number(forgotten.Forgotten), "erasure": forgotten.Erasure}, err
	case "drain":
		return object{"drained": d.ledger.Drain(seconds(c["seconds"]))}, nil
	case "rewrites":
		return d.rewriter.told(), nil
	case "stats":
		return statsOf(d.ledger.Stats()), nil
	case "work_key":
		return object{"work_key": turnledger.WorkKey(c.texts("trigger_ids")...)}, nil
	}
	return nil, errUnknown
}

func (d *driver) open(c command) error {
	d.close()
	given, _ := c["deadlines"].(map[string]any)
	deadlines := turnledger.Deadlines{}
	for name, field := range map[string]*time.Duration{
		"begin": &deadlines.Begin, "user_message": &deadlines.UserMessage, "complete": &deadlines.Complete,
		"run_end": &deadlines.RunEnd, "settle": &deadlines.Settle, "forget": &deadlines.Forget,
		"rewrite": &deadlines.Rewrite, "close": &deadlines.Close,
	} {
		if value, ok := given[name]; ok {
			*field = seconds(value)
			if *field == 0 {
				*field = -1 // the library takes zero for its default, and the case means it
			}
		}
	}
	with := []turnledger.Option{turnledger.WithDeadlines(deadlines)}
	if answers, _ := c["rewriter"].([]any); len(answers) > 0 {
		atOnce := 0
		if wanted, ok := c["rewrites_at_once"].(float64); ok {
			atOnce = int(wanted)
			if atOnce == 0 {
				atOnce = -1
			}
		}
		d.rewriter = &scripted{answers: answers}
		with = append(with, turnledger.WithRewriter(d.rewriter.rewrite, atOnce))
	}
	ledger, err := turnledger.New(c["target"].(string), with...)
	d.ledger = ledger
	return err
}

func (d *driver) close() {
	if d.ledger != nil {
		_ = d.ledger.Close()
	}
	d.ledger, d.rewriter, d.turns = nil, nil, map[string]*turnledger.Turn{}
}

func (d *driver) began(c command, turn *turnledger.Turn, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	d.turns[c.name("as")] = turn
	return object{
		"history": historyOf(turn.History), "read_failure": failure(turn.ReadFailure), "already_recorded": turn.AlreadyRecorded,
	}, nil
}

func (d *driver) turn(c command) *turnledger.Turn { return d.turns[c.name("turn")] }

func (d *driver) userMessage(ctx context.Context, c command) (any, error) {
	phase, _ := c["phase"].(string)
	round := turnledger.Round{
		Phase: turnledger.Phase(phase), Task: c.text("task"), Context: c.text("context"), PriorWork: c.text("prior_work"),
	}
	iteration, err := c.uint("iteration")
	if err != nil {
		return nil, err
	}
	if iteration != nil {
		if *iteration == 0 || *iteration > 1<<32-1 {
			return nil, turnledger.ErrArgument // a uint32 from 1 on cannot say it
		}
		round.Iteration = uint32(*iteration)
	}
	if round.SystemBytes, err = c.uint("system_bytes"); err != nil {
		return nil, err
	}
	if round.ToolBytes, err = c.uint("tool_bytes"); err != nil {
		return nil, err
	}
	text, err := d.turn(c).UserMessage(ctx, round)
	return object{"text": shown(text)}, err
}

var zoned = regexp.MustCompile(`(?i)(Z|[+-]\d\d:\d\d)$`)

func (d *driver) complete(ctx context.Context, c command) (any, error) {
	given := turnledger.Completion{
		Reply: c.optional("reply"), Unsent: c.optional("unsent"), Trigger: c.text("trigger"), Intent: c.text("intent"),
		Decision: c.text("decision"), CompletedWork: c.text("completed_work"), BlockedOn: c.text("blocked_on"),
		NoRewrite: c["rewrite"] == false,
	}
	if moment, ok := c["completed_at"].(string); ok {
		at, err := time.Parse(time.RFC3339Nano, moment)
		if err != nil || !zoned.MatchString(moment) {
			return nil, turnledger.ErrArgument // a time.Time cannot lack a zone
		}
		given.CompletedAt = at
	}
	receipt, err := d.turn(c).Complete(ctx, given)
	return receiptOf(receipt), err
}
