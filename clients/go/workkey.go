package turnledger

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const workKeyCharacters = 32

// WorkKey is the digest of a turn's triggers: order, repeats and blanks do not matter.
//
// Ids are trimmed, empty ones and repeats dropped, the rest sorted by their bytes, joined with a newline and hashed: the first
// 32 hex digits of SHA-256. No id gives the empty key, which the ledger does not record.
func WorkKey(triggerIDs ...string) string {
	ids := make([]string, 0, len(triggerIDs))
	for _, id := range triggerIDs {
		mended, _ := repaired(id)
		if trimmed := strings.TrimFunc(mended, isBlank); trimmed != "" {
			ids = append(ids, trimmed)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	digest := sha256.Sum256([]byte(strings.Join(slices.Compact(ids), "\n")))
	return hex.EncodeToString(digest[:])[:workKeyCharacters]
}

// isBlank is what the contract trims (tests/conformance/README.md), which is not quite what [unicode.IsSpace] is.
func isBlank(char rune) bool {
	switch {
	case char >= 0x09 && char <= 0x0D, char >= 0x1C && char <= 0x20, char == 0x85, char == 0xA0, char == 0x1680,
		char >= 0x2000 && char <= 0x200A, char == 0x2028, char == 0x2029, char == 0x202F, char == 0x205F, char == 0x3000:
		return true
	}
	return false
}
