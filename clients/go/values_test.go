package turnledger

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// One U+FFFD stands for each half of a character that stands alone, and for each byte that is part of none.
func TestRepair(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü 🙂": "plain ü 🙂", "a\xED\xA0\x80b": "a\uFFFDb", "\xED\xA0\x80\xED\xB0\x80": "\uFFFD\uFFFD",
		"\xFF\xFEx": "\uFFFD\uFFFDx", "\uFFFD": "\uFFFD", "\xED\xA0": "\uFFFD\uFFFD",
	} {
		if got, _ := repaired(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A sensitive value is withheld, and all else stands digit for digit; what is no object, or repeats a key, goes as a whole.
func TestWithheld(t *testing.T) {
	nines := strings.Repeat("9", 5_000)
	for arguments, want := range map[string]string{
		`{"a": 1.50, "k": {"x": [1]}, "b": "é"}`: `{"a": 1.50, "k": "(withheld)", "b": "é"}`,
		`{"k":1}`:                      `{"k":"(withheld)"}`,
		`{"x": ` + nines + `, "k": 1}`: `{"x": ` + nines + `, "k": "(withheld)"}`,
		`{"a": {"k": 1}}`:              `{"a": {"k": 1}}`,
		`{"\u006b": 1}`:                `{"\u006b": "(withheld)"}`,
		`{"k": 1, "k": 2}`:             "(withheld)",
		`{"a": {"b": 1, "b": 2}}`:      "(withheld)",
		`[1]`:                          "(withheld)",
		`{"k": NaN}`:                   "(withheld)",
		`{"k": 1`:                      "(withheld)",
		``:                             "(withheld)",
	} {
		if got := withheld(arguments, []string{"k"}); got != want {
			t.Errorf("%.40s became %.60s", arguments, got)
		}
	}
	if deep := strings.Repeat("[", 100_000); withheld(deep, []string{"k"}) != "(withheld)" {
		t.Error("a bomb is not withheld")
	}
}

// A saved turn comes back as it was, in ASCII; one that was changed is refused.
func TestSaved(t *testing.T) {
	text := "## Earlier in this conversation\n\nGrüße 🙂 \u2028"
	turn := opening{
		keys:    Keys{"seat", "c", "t", "w"},
		history: &History{State: Present, Text: text, Digest: digestOf(text), Bytes: uint64(len(text)), NoLongerKept: 1 << 60},
		readFailure: &Failure{
			Code: "UNAVAILABLE", Reason: "STORE_IO", RetryAfter: 250 * time.Millisecond, Violations: []Violation{{"f", "d"}},
		},
		iterations: map[Phase]uint32{Execute: 3},
		calls:      []recordedCall{{Name: "n", Arguments: `{"k":1}`, Kind: Write, Sensitive: []string{"k"}}},
	}
	saved := dump(turn)
	for _, char := range saved {
		if char > 0x7F {
			t.Fatalf("%q is no ASCII", char)
		}
	}
	back, err := load(saved)
	if err != nil {
		t.Fatal(err)
	}
	if back.history.Text != text || back.history.NoLongerKept != 1<<60 || back.iterations[Execute] != 3 ||
		back.calls[0].Arguments != `{"k":"(withheld)"}` || back.readFailure.RetryAfter != 250*time.Millisecond {
		t.Errorf("%+v", back)
	}
	for _, damaged := range []string{
		strings.Replace(saved, "Gr", "GR", 1), strings.Replace(saved, `"keys"`, `"kees"`, 1),
		strings.Replace(saved, `"turnledger_saved_turn":1`, `"turnledger_saved_turn":2`, 1),
		strings.Replace(saved, `"already_recorded":false`, `"already_recorded":null`, 1),
		strings.Replace(saved, `"agent_handle":"seat"`, `"agent_handle":"\ud800"`, 1), saved[:len(saved)-2], "null", "[]", "",
	} {
		if _, err := load(damaged); err == nil {
			t.Errorf("%.80s was taken", damaged)
		}
	}
}

// The vectors that every language shares.
func TestVectors(t *testing.T) {
	var keys struct {
		Cases []struct {
			TriggerIDs []string `json:"trigger_ids"`
			WorkKey    string   `json:"work_key"`
		} `json:"cases"`
	}
	data, err := os.ReadFile("../../tests/conformance/work_key.json")
	if err != nil || json.Unmarshal(data, &keys) != nil || len(keys.Cases) == 0 {
		t.Fatalf("the vectors cannot be read: %v", err)
	}
	for _, each := range keys.Cases {
		if got := WorkKey(each.TriggerIDs...); got != each.WorkKey {
			t.Errorf("%q gave %s", each.TriggerIDs, got)
		}
	}
}

// The sidecar's own time is a floor for the next try; without one waits double, up to a second.
func TestWaits(t *testing.T) {
	for range 200 {
		if wait := waitFor(&Failure{RetryAfter: 200 * time.Millisecond}, 1); wait < 200*time.Millisecond || wait > 300*time.Millisecond {
			t.Fatal(wait)
		}
		if wait := waitFor(&Failure{}, 50); wait < longestWait/2 || wait > longestWait {
			t.Fatal(wait)
		}
	}
}
