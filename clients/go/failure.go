package turnledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reasons that this library finds by itself. All others are the sidecar's own (docs/errors.md), or, where whoever answered
// gave none, the name of the gRPC status.
const (
	// ReasonUnreachable: nobody answered at the address, or the connection broke.
	ReasonUnreachable = "UNREACHABLE"
	// ReasonDeadline: no answer in time; what was asked may have happened all the same.
	ReasonDeadline = "DEADLINE_EXCEEDED"
	// ReasonTooLarge: over the message limit; the sidecar gives the same reason.
	ReasonTooLarge = "TOO_LARGE"
	// ReasonBadAnswer: an answer that the contract does not allow.
	ReasonBadAnswer = "BAD_ANSWER"
	// ReasonClosed: the ledger was closed before the call was over.
	ReasonClosed = "CLOSED"
)

// ErrArgument is what every error for an argument out of range or of another form wraps.
var ErrArgument = errors.New("turnledger: argument")

// ErrInvalidSavedTurn is what [Ledger.Resume] wraps: the text is no saved turn, was damaged, or is of a later version.
var ErrInvalidSavedTurn = errors.New("turnledger: invalid saved turn")

// Violation is one field of a request that was refused, and the rule that it broke.
type Violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// Failure is why there is no answer, whatever went wrong between the engine and the sidecar.
type Failure struct {
	// Code is a gRPC status name, such as UNAVAILABLE.
	Code string
	// Reason is the machine-readable cause, to branch on.
	Reason string
	// Message is for a person. A foreign server may have written anything into it, so it is in no log line of ours.
	Message string
	// RetryAfter is how long the sidecar asks to wait; 0 if it named no time.
	RetryAfter time.Duration
	Violations []Violation
}

// String is fit for a log: code, reason and the refused fields, with the message only where the transport wrote it.
func (f *Failure) String() string {
	line := f.Code
	if f.Reason != f.Code {
		line += " " + f.Reason
	}
	if len(f.Violations) > 0 {
		fields := make([]string, len(f.Violations))
		for i, violation := range f.Violations {
			fields[i] = violation.Field
		}
		line += " (" + strings.Join(fields, ", ") + ")"
	}
	if f.Reason == ReasonUnreachable && f.Message != "" {
		line += ": " + f.Message
	}
	return line
}

// ServiceError is a call whose failure the caller must see: nothing was forgotten, as far as anybody knows.
type ServiceError struct{ Failure *Failure }

func (e *ServiceError) Error() string { return "turnledger: " + e.Failure.String() }

func badArgument(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrArgument}, values...)...)
}
