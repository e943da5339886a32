package turnledger

import (
	"encoding/json"
	"slices"
	"strings"
)

const withheldValue = "(withheld)"

// withheld is the arguments with the value of each sensitive top-level name replaced by "(withheld)", all else digit for
// digit. Text that is no JSON object, or that repeats a key, is withheld as a whole, as it is in the block.
func withheld(arguments string, sensitive []string) string {
	if len(sensitive) == 0 {
		return arguments
	}
	members, ok := topLevelMembers(arguments)
	if !ok {
		return withheldValue
	}
	var kept strings.Builder
	at := 0
	for _, member := range members {
		if slices.Contains(sensitive, member.name) {
			kept.WriteString(arguments[at:member.start])
			kept.WriteString(`"` + withheldValue + `"`)
			at = member.end
		}
	}
	kept.WriteString(arguments[at:])
	return kept.String()
}

type member struct {
	name       string
	start, end int
}

// topLevelMembers are the names of a JSON object with the places of their values; not ok for no object, or a key that repeats
// at any depth. Without recursion, so depth costs memory alone.
func topLevelMembers(text string) ([]member, bool) {
	if !json.Valid([]byte(text)) || text[skipSpace(text, 0)] != '{' {
		return nil, false
	}
	var members []member
	var open []map[string]bool // nil for an open array
	name, start, end := "", -1, -1
	for at := 0; at < len(text); at++ {
		sign := text[at]
		if isJSONSpace(sign) {
			continue
		}
		if len(open) == 1 && (sign == ',' || sign == '}') && start >= 0 {
			members = append(members, member{name, start, end})
			start = -1
		}
		switch sign {
		case '{':
			open = append(open, map[string]bool{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			began := at
			at = endOfString(text, at)
			if after := skipSpace(text, at+1); after < len(text) && text[after] == ':' {
				var key string
				if json.Unmarshal([]byte(text[began:at+1]), &key) != nil || open[len(open)-1][key] {
					return nil, false
				}
				open[len(open)-1][key] = true
				at = after
				if len(open) == 1 {
					name, start = key, skipSpace(text, after+1)
				}
				continue
			}
		}
		end = at + 1
	}
	return members, true
}

func endOfString(text string, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at
}

func skipSpace(text string, at int) int {
	for at < len(text) && isJSONSpace(text[at]) {
		at++
	}
	return at
}

func isJSONSpace(sign byte) bool { return sign == ' ' || sign == '\t' || sign == '\n' || sign == '\r' }
