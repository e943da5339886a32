package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	turnledger "github.com/turnledger/turnledger/clients/go"
)

// shownBytes: a text of more is answered by digest and size.
const shownBytes = 65_536

type (
	command map[string]any
	object  = map[string]any
)

// text is a TEXT; the empty one where there is none.
func (c command) text(name string) string { return text(c[name]) }

func (c command) optional(name string) *string {
	if c[name] == nil {
		return nil
	}
	value := c.text(name)
	return &value
}

func (c command) texts(name string) []string {
	list, _ := c[name].([]any)
	found := make([]string, len(list))
	for i, each := range list {
		found[i] = text(each)
	}
	return found
}

func (c command) name(member string) string {
	if name, ok := c[member].(string); ok {
		return name
	}
	return "turn"
}

func (c command) keys() turnledger.Keys {
	return turnledger.Keys{
		AgentHandle: c.text("agent_handle"), ConversationKey: c.text("conversation_key"), TurnID: c.text("turn_id"),
		WorkKey: c.text("work_key"),
	}
}

func (c command) scope() turnledger.Scope {
	if of, ok := c["turn_scope"].(map[string]any); ok {
		in := command(of)
		return turnledger.TurnScope(in.text("agent_handle"), in.text("conversation_key"), in.text("work_key"))
	}
	if of, ok := c["conversation_scope"].(map[string]any); ok {
		in := command(of)
		return turnledger.ConversationScope(in.text("agent_handle"), in.text("conversation_key"))
	}
	of, _ := c["seat_scope"].(map[string]any)
	return turnledger.SeatScope(command(of).text("agent_handle"))
}

// uint is a NUMBER of 64 bits; what a uint64 cannot hold is refused here, as the language refuses it.
func (c command) uint(name string) (*uint64, error) {
	switch given := c[name].(type) {
	case nil:
		return nil, nil
	case string:
		value, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			return nil, turnledger.ErrArgument
		}
		return &value, nil
	case float64:
		if given < 0 || given != math.Trunc(given) {
			return nil, turnledger.ErrArgument
		}
		value := uint64(given)
		return &value, nil
	}
	return nil, turnledger.ErrArgument
}

func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case map[string]any:
		if each, ok := value["repeat"]; ok {
			return strings.Repeat(text(each), int(value["times"].(float64)))
		}
		if list, ok := value["join"].([]any); ok {
			var joined strings.Builder
			for _, each := range list {
				joined.WriteString(text(each))
			}
			return joined.String()
		}
		if list, ok := value["utf16"].([]any); ok {
			return units(list)
		}
	}
	panic(fmt.Sprintf("no text: %v", value))
}

// units are UTF-16 code units; a half that stands alone is its three bytes of generalised UTF-8.
func units(list []any) string {
	var made strings.Builder
	for i := 0; i < len(list); i++ {
		unit, _ := strconv.ParseUint(list[i].(string), 16, 16)
		char := rune(unit)
		if utf16.IsSurrogate(char) {
			if i+1 < len(list) {
				next, _ := strconv.ParseUint(list[i+1].(string), 16, 16)
				if pair := utf16.DecodeRune(char, rune(next)); pair != '\uFFFD' {
					made.WriteRune(pair)
					i++
					continue
				}
			}
			made.Write([]byte{0xE0 | byte(char>>12), 0x80 | byte(char>>6)&0x3F, 0x80 | byte(char)&0x3F})
			continue
		}
		made.WriteRune(char)
	}
	return made.String()
}

func seconds(value any) time.Duration {
	given, _ := value.(float64)
	return time.Duration(given * float64(time.Second))
}

func shown(value string) any {
	if len(value) <= shownBytes {
		return value
	}
	digest := sha256.Sum256([]byte(value))
	return object{"sha256": hex.EncodeToString(digest[:]), "bytes": len(value)}
}

func number(value uint64) any {
	if value > 1<<53-1 {
		return strconv.FormatUint(value, 10)
	}
	return value
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func failure(value *turnledger.Failure) any {
	if value == nil {
		return nil
	}
	fields := []string{}
	for _, violation := range value.Violations {
		fields = append(fields, violation.Field)
	}
	var retryAfter any
	if value.RetryAfter > 0 {
		retryAfter = json.Number(strconv.FormatFloat(value.RetryAfter.Seconds(), 'f', -1, 64))
	}
	return object{"code": value.Code, "reason": value.Reason, "retry_after": retryAfter, "fields": fields}
}

func historyOf(value *turnledger.History) any {
	if value == nil {
		return nil
	}
	return object{
		"state": value.State, "text": shown(value.Text), "digest": value.Digest, "bytes": number(value.Bytes),
		"shown": value.Shown, "condensed": value.Condensed, "left_out": value.LeftOut,
		"no_longer_kept": number(value.NoLongerKept), "unreadable": value.Unreadable,
	}
}

func receiptOf(value turnledger.Receipt) any {
	return object{
		"disposition": orNull(string(value.Disposition)), "skip_reason": orNull(value.SkipReason),
		"entry_id": value.EntryID, "ordinal": number(value.Ordinal), "failure": failure(value.Failure),
		"attempts": value.Attempts,
	}
}

func statsOf(value turnledger.Stats) any {
	return object{
		"reads": value.Reads, "read_failures": value.ReadFailures, "composed_by_sidecar": value.ComposedBySidecar,
		"composed_locally": value.ComposedLocally, "recorded": value.Recorded, "duplicates": value.Duplicates,
		"skipped": value.Skipped, "write_failures": value.WriteFailures, "run_end_failures": value.RunEndFailures,
		"settled": value.Settled, "settle_failures": value.SettleFailures, "forgotten": value.Forgotten,
		"forget_failures": value.ForgetFailures, "orders_accepted": value.OrdersAccepted,
		"orders_rejected": value.OrdersRejected, "orders_error": value.OrdersError,
		"orders_no_budget": value.OrdersNoBudget, "orders_deadline": value.OrdersDeadline,
		"orders_not_sent": value.OrdersNotSent, "orders_abandoned": value.OrdersAbandoned,
		"rewriter_calls": value.RewriterCalls, "too_large": value.TooLarge, "retries": value.Retries,
		"repaired": value.Repaired,
	}
}
