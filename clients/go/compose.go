package turnledger

import "strings"

const (
	historyHeading   = "## Earlier in this conversation"
	taskHeading      = "## Task"
	priorWorkHeading = "## Already done earlier in this turn"
)

// messageBytes is the most that a message may have, on both ends and in every client.
const messageBytes = 32 * 1024 * 1024

// Parts is what one user message is made of, each part verbatim; an empty one is left out. History is the finished block.
type Parts struct{ Context, History, Task, PriorWork string }

// Compose is the finished user message: the parts in their order, joined by one blank line. It is normative: every client
// composes the same bytes by itself when the sidecar does not answer, so that no round loses its block.
func Compose(parts Parts) string {
	pieces := make([]string, 0, 4)
	for _, piece := range []string{
		parts.Context, parts.History, under(taskHeading, parts.Task), under(priorWorkHeading, parts.PriorWork),
	} {
		if piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return strings.Join(pieces, "\n\n")
}

func under(heading, text string) string {
	if text == "" {
		return ""
	}
	return heading + "\n\n" + text
}

// PromptSize is the sizes of a finished message and of its parts without what composition adds, in bytes of UTF-8.
// ApproximateTokens is a quarter of UserBytes, rounded up; no tokenizer's count.
type PromptSize struct {
	UserBytes, HistoryBytes, TaskBytes, ContextBytes, PriorWorkBytes, ApproximateTokens int
}

func promptSize(message string, parts Parts) PromptSize {
	return PromptSize{
		UserBytes: len(message), HistoryBytes: len(parts.History), TaskBytes: len(parts.Task),
		ContextBytes: len(parts.Context), PriorWorkBytes: len(parts.PriorWork),
		ApproximateTokens: (len(message) + 3) / 4,
	}
}
