package turnledger

import (
	"strings"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// repaired is the text as valid UTF-8, and how many places were replaced: one for each byte that is no part of a character,
// and one for the three bytes of a lone surrogate, which other languages hold as one.
func repaired(text string) (string, int) {
	if utf8.ValidString(text) {
		return text, 0
	}
	var mended strings.Builder
	replaced := 0
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRuneInString(text[at:])
		if char != utf8.RuneError || size > 1 {
			mended.WriteString(text[at : at+size])
			at += size
			continue
		}
		mended.WriteString(replacement)
		replaced++
		if isSurrogate(text[at:]) {
			at += 3
		} else {
			at++
		}
	}
	return mended.String(), replaced
}

// isSurrogate is whether the bytes begin with a UTF-16 surrogate in generalised UTF-8.
func isSurrogate(bytes string) bool {
	return len(bytes) >= 3 && bytes[0] == 0xED && bytes[1] >= 0xA0 && bytes[1] <= 0xBF && bytes[2]&0xC0 == 0x80
}

// mender repairs the fields of one request, and remembers which it had to touch: names, never content.
type mender struct {
	fields   []string
	replaced int
}

func (m *mender) mend(field, text string) string {
	mended, replaced := repaired(text)
	if replaced > 0 {
		m.fields = append(m.fields, field)
		m.replaced += replaced
	}
	return mended
}

func (m *mender) keys(keys Keys) Keys {
	return Keys{
		AgentHandle:     m.mend("agent_handle", keys.AgentHandle),
		ConversationKey: m.mend("conversation_key", keys.ConversationKey),
		TurnID:          m.mend("turn_id", keys.TurnID),
		WorkKey:         m.mend("work_key", keys.WorkKey),
	}
}
