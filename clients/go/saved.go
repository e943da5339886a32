package turnledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const savedVersion = 1

// recordedCall is one tool call, its text valid UTF-8. Error is empty unless Failed.
type recordedCall struct {
	Name      string   `json:"name"`
	Arguments string   `json:"arguments"`
	Kind      CallKind `json:"kind"`
	Failed    bool     `json:"failed"`
	Error     string   `json:"error"`
	Sensitive []string `json:"sensitive"`
}

// opening is everything of a turn that outlives the process it ran in.
type opening struct {
	keys            Keys
	history         *History
	readFailure     *Failure
	alreadyRecorded bool
	iterations      map[Phase]uint32
	calls           []recordedCall
}

type savedTurn struct {
	Version int `json:"turnledger_saved_turn"`
	Keys    struct {
		AgentHandle     string `json:"agent_handle"`
		ConversationKey string `json:"conversation_key"`
		TurnID          string `json:"turn_id"`
		WorkKey         string `json:"work_key"`
	} `json:"keys"`
	History         *savedHistory    `json:"history"`
	ReadFailure     *savedFailure    `json:"read_failure"`
	AlreadyRecorded bool             `json:"already_recorded"`
	Iterations      map[Phase]uint32 `json:"iterations"`
	Calls           []recordedCall   `json:"calls"`
}

type savedHistory struct {
	State        HistoryState `json:"state"`
	Text         string       `json:"text"`
	Digest       string       `json:"digest"`
	Bytes        uint64       `json:"bytes"`
	Shown        uint32       `json:"shown"`
	Condensed    uint32       `json:"condensed"`
	LeftOut      uint32       `json:"left_out"`
	NoLongerKept uint64       `json:"no_longer_kept"`
	Unreadable   uint32       `json:"unreadable"`
}

type savedFailure struct {
	Code       string      `json:"code"`
	Reason     string      `json:"reason"`
	Message    string      `json:"message"`
	RetryAfter *float64    `json:"retry_after"`
	Violations []Violation `json:"violations"`
}

// dump is the turn as text: JSON in ASCII, the same form in every language. Values of sensitive arguments are withheld.
func dump(turn opening) string {
	saved := savedTurn{Version: savedVersion, AlreadyRecorded: turn.alreadyRecorded, Iterations: turn.iterations}
	saved.Keys.AgentHandle, saved.Keys.ConversationKey = turn.keys.AgentHandle, turn.keys.ConversationKey
	saved.Keys.TurnID, saved.Keys.WorkKey = turn.keys.TurnID, turn.keys.WorkKey
	if turn.history != nil {
		history := savedHistory(*turn.history)
		saved.History = &history
	}
	if failure := turn.readFailure; failure != nil {
		saved.ReadFailure = &savedFailure{failure.Code, failure.Reason, failure.Message, nil, []Violation{}}
		if failure.RetryAfter > 0 {
			seconds := failure.RetryAfter.Seconds()
			saved.ReadFailure.RetryAfter = &seconds
		}
		saved.ReadFailure.Violations = append(saved.ReadFailure.Violations, failure.Violations...)
	}
	saved.Calls = make([]recordedCall, len(turn.calls))
	for i, made := range turn.calls {
		made.Arguments = withheld(made.Arguments, made.Sensitive)
		made.Sensitive = append([]string{}, made.Sensitive...)
		saved.Calls[i] = made
	}
	if saved.Iterations == nil {
		saved.Iterations = map[Phase]uint32{}
	}
	text, _ := json.Marshal(saved) // nothing in it can fail
	return ascii(string(text))
}

func ascii(text string) string {
	var plain strings.Builder
	plain.Grow(len(text))
	for _, char := range text {
		switch {
		case char < utf8.RuneSelf:
			plain.WriteByte(byte(char))
		case char > 0xFFFF:
			high, low := utf16.EncodeRune(char)
			fmt.Fprintf(&plain, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&plain, `\u%04x`, char)
		}
	}
	return plain.String()
}

// load is the turn that dump wrote, in whatever language.
func load(text string) (opening, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil || members == nil {
		return opening{}, invalid("this is no saved turn")
	}
	version, ok := members["turnledger_saved_turn"]
	if !ok {
		return opening{}, invalid("this is no saved turn")
	}
	if string(version) != strconv.Itoa(savedVersion) {
		return opening{}, invalid(fmt.Sprintf("it was saved in version %s, and this library reads version %d", version, savedVersion))
	}
	var saved savedTurn
	if !complete(members, savedShape) || hasLoneSurrogate(text) || json.Unmarshal([]byte(text), &saved) != nil {
		return opening{}, invalid("it is damaged")
	}
	turn := opening{
		keys: Keys{
			AgentHandle: saved.Keys.AgentHandle, ConversationKey: saved.Keys.ConversationKey,
			TurnID: saved.Keys.TurnID, WorkKey: saved.Keys.WorkKey,
		},
		alreadyRecorded: saved.AlreadyRecorded, iterations: saved.Iterations, calls: saved.Calls,
	}
	for phase := range saved.Iterations {
		if _, ok := phases[phase]; !ok {
			return opening{}, invalid("it is damaged")
		}
	}
	for _, made := range saved.Calls {
		if _, ok := callKinds[made.Kind]; !ok {
			return opening{}, invalid("it is damaged")
		}
	}
	if saved.History != nil {
		history := History(*saved.History)
		if _, ok := historyStates[history.State]; !ok || digestOf(history.Text) != history.Digest {
			return opening{}, invalid("it is damaged") // the block is not the one that was frozen
		}
		turn.history = &history
	}
	if failure := saved.ReadFailure; failure != nil {
		turn.readFailure = &Failure{
			Code: failure.Code, Reason: failure.Reason, Message: failure.Message, Violations: failure.Violations,
		}
		if failure.RetryAfter != nil && !math.IsNaN(*failure.RetryAfter) {
			turn.readFailure.RetryAfter = time.Duration(*failure.RetryAfter * float64(time.Second))
		}
	}
	return turn, nil
}

// shape is what members an object must have: nested ones by their own shape, "each" for the elements of a list. A nested one
// whose name ends in "?" may be null; so may a scalar.
type shape map[string]shape

var savedShape = shape{
	"keys":  {"agent_handle": nil, "conversation_key": nil, "turn_id": nil, "work_key": nil},
	"calls": {"each": {"name": nil, "arguments": nil, "kind": nil, "failed": nil, "error": nil, "sensitive": {"each": nil}}},
	"history?": {
		"state": nil, "text": nil, "digest": nil, "bytes": nil, "shown": nil, "condensed": nil, "left_out": nil,
		"no_longer_kept": nil, "unreadable": nil,
	},
	"read_failure?": {
		"code": nil, "reason": nil, "message": nil, "retry_after?": nil,
		"violations": {"each": {"field": nil, "description": nil}},
	},
	"already_recorded": nil,
	"iterations":       nil,
}

// complete is whether every member is there, and none is null that may not be: encoding/json lets both pass.
func complete(members map[string]json.RawMessage, wanted shape) bool {
	for name, inner := range wanted {
		name, mayBeNull := strings.CutSuffix(name, "?")
		value, ok := members[name]
		if !ok {
			return false
		}
		if string(value) == "null" {
			if mayBeNull {
				continue
			}
			return false
		}
		if each, isList := inner["each"]; isList {
			var elements []json.RawMessage
			if json.Unmarshal(value, &elements) != nil {
				return false
			}
			for _, element := range elements {
				if string(element) == "null" || (each != nil && !completeObject(element, each)) {
					return false
				}
			}
		} else if inner != nil && !completeObject(value, inner) {
			return false
		}
	}
	return true
}

func completeObject(value json.RawMessage, wanted shape) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(value, &members) == nil && members != nil && complete(members, wanted)
}

var escapes = regexp.MustCompile(`\\(?:u([0-9a-fA-F]{4})|.)`)

// hasLoneSurrogate is whether the JSON text escapes half a character: encoding/json would make it U+FFFD without a word.
func hasLoneSurrogate(text string) bool {
	high, end := false, -1
	for _, place := range escapes.FindAllStringSubmatchIndex(text, -1) {
		if high && place[0] != end {
			return true
		}
		var unit uint64
		if place[2] >= 0 {
			unit, _ = strconv.ParseUint(text[place[2]:place[3]], 16, 32)
		}
		isLow := unit >= 0xDC00 && unit <= 0xDFFF
		if high != isLow {
			return true
		}
		high, end = unit >= 0xD800 && unit <= 0xDBFF, place[1]
	}
	return high
}

func invalid(why string) error {
	return errors.Join(ErrInvalidSavedTurn, errors.New(why))
}
