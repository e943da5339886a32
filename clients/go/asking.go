package turnledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// The first wait where the sidecar names none, doubled each time: a sidecar restarts in well under a second.
	firstWait = 50 * time.Millisecond
	// The longest such wait, so that a sidecar that comes back is found within a second.
	longestWait = time.Second
	// With less left than this no further try is made: it could only end in the deadline.
	shortestTry = 10 * time.Millisecond
	// A further try that had less than this and ran out of time says nothing new: the failure before it stands.
	tellingTry = 500 * time.Millisecond
)

// rule decides whether a call that failed may be made again.
type rule func(*Failure) bool

func never(*Failure) bool { return false }

// asTheContractAllows is for writes: unavailable, shed, or out of time. All are idempotent, so a lost answer is safe to ask for
// again. A full disk, a refused field, a damaged store and a bug stay as they are.
func asTheContractAllows(failure *Failure) bool {
	return failure.Code == "UNAVAILABLE" || failure.Code == "DEADLINE_EXCEEDED" || failure.Reason == "OVERLOADED"
}

// whileItAnswers is for the read at turn start: somebody waits, so an address where nobody is fails at once.
func whileItAnswers(failure *Failure) bool {
	return asTheContractAllows(failure) && failure.Reason != ReasonUnreachable
}

// waitFor is how long to wait after the attempt-th failure, from 1. The sidecar's own time is a floor, up to half as much is
// added; else half to all of a doubling wait. Jitter keeps engines that were shed together from coming back together.
func waitFor(failure *Failure, attempt int) time.Duration {
	chance := rand.Float64()
	if failure.RetryAfter > 0 {
		return time.Duration(float64(failure.RetryAfter) * (1 + chance/2))
	}
	doubled := min(firstWait<<min(attempt-1, 16), longestWait)
	return time.Duration(float64(doubled) * (0.5 + chance/2))
}

// asker is the means of asking, shared by all turns of a ledger.
type asker struct {
	conn      *grpc.ClientConn
	deadlines Deadlines
	patience  patience
	reporter  *reporter
	propagate func(context.Context, metadata.MD)
	closing   context.Context
	close     context.CancelFunc
	closed    atomic.Bool
}

var hostPort = regexp.MustCompile(`^[^/]+:\d+$`)

// dial makes the connection; nothing is dialled before the first call.
func dial(target string) (*grpc.ClientConn, error) {
	switch {
	case strings.HasPrefix(target, "unix:") && strings.Trim(target[len("unix:"):], "/") != "":
	case !strings.HasPrefix(target, "unix:") && hostPort.MatchString(target):
		target = "passthrough:///" + target
	default:
		return nil, badArgument(`the target must be "unix:///path", "unix:path" or "host:port", not %q`, target)
	}
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// The library checks what it sends, against the message limit and with a reason. What it is sent it takes whole: a newest
		// entry is shown however long.
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.ForceCodecV2(rawCodec{}),
		),
		// Retries are this library's own; grpc's would repeat a message that is never to be asked for twice.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		// A sidecar is on this machine: a proxy of the environment has no business between.
		grpc.WithNoProxy(),
		// A sidecar that comes back is found within a second, and one that accepts and says nothing is given up after two.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithIdleTimeout(0),
	)
}

// rawCodec passes bytes through: what does not parse is for us to say.
type rawCodec struct{}

func (rawCodec) Marshal(value any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*value.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, value any) error {
	*value.(*[]byte) = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }

var _ encoding.CodecV2 = rawCodec{}

// once makes one try of the call. What came of it tells how patient the next rounds may be. The error is the context's own.
func once[A any](ctx context.Context, a *asker, c call[A], limit time.Duration) (A, *Failure, error) {
	answer, failure, err := try(ctx, a, c, limit)
	switch {
	case err != nil:
	case failure == nil:
		a.patience.answered()
	case failure.Reason == ReasonUnreachable || failure.Reason == ReasonDeadline:
		a.patience.unanswered()
	case failure.Reason != ReasonTooLarge && failure.Reason != ReasonClosed:
		a.patience.answered()
	}
	return answer, failure, err
}

// persist makes as many tries as the rule allows within the limit altogether, and says how many there were.
func persist[A any](ctx context.Context, a *asker, c call[A], limit time.Duration, may rule) (A, *Failure, int, error) {
	until := time.Now().Add(limit)
	var before *Failure
	for attempts := 1; ; attempts++ {
		left := max(time.Until(until), 0)
		answer, failure, err := once(ctx, a, c, left)
		if err != nil || failure == nil || !may(failure) {
			return answer, failure, attempts, err
		}
		if before != nil && failure.Reason == ReasonDeadline && left < tellingTry {
			failure = before
		}
		before = failure
		wait := waitFor(failure, attempts)
		if time.Now().Add(wait).After(until.Add(-shortestTry)) {
			return answer, failure, attempts, nil
		}
		select {
		case <-time.After(wait):
		case <-a.closing.Done():
		case <-ctx.Done():
			return answer, nil, attempts, ctx.Err()
		}
		a.reporter.add(func(stats *Stats) { stats.Retries++ })
	}
}

func try[A any](ctx context.Context, a *asker, c call[A], limit time.Duration) (A, *Failure, error) {
	var nothing A
	if err := ctx.Err(); err != nil {
		return nothing, nil, err
	}
	if c.size > messageBytes {
		message := fmt.Sprintf("the request has %d bytes of at most %d", c.size, messageBytes)
		return nothing, &Failure{Code: "RESOURCE_EXHAUSTED", Reason: ReasonTooLarge, Message: message}, nil
	}
	if a.closed.Load() {
		return nothing, closedFailure(), nil
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(a.closing, cancel)()
	if a.propagate != nil {
		headers := metadata.MD{}
		a.propagate(ctx, headers)
		within = metadata.NewOutgoingContext(within, headers)
	}
	request := c.request()
	var bytes []byte
	if err := a.conn.Invoke(within, c.path, &request, &bytes); err != nil {
		switch {
		case ctx.Err() != nil:
			return nothing, nil, ctx.Err()
		case a.closed.Load():
			return nothing, closedFailure(), nil
		case errors.Is(within.Err(), context.DeadlineExceeded):
			return nothing, &Failure{Code: "DEADLINE_EXCEEDED", Reason: ReasonDeadline}, nil
		}
		return nothing, failureOf(status.Convert(err)), nil
	}
	answer, err := c.decode(bytes)
	if err != nil {
		return nothing, &Failure{Code: "OK", Reason: ReasonBadAnswer, Message: err.Error()}, nil
	}
	return answer, nil, nil
}

func closedFailure() *Failure { return &Failure{Code: "CANCELLED", Reason: ReasonClosed} }

// failureOf is what a call's status tells; damaged details count as none.
func failureOf(said *status.Status) *Failure {
	failure := &Failure{Code: codeName(said.Code()), Message: said.Message()}
	for _, detail := range said.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			// ErrorInfo of anybody else gives no reasons that this library could trust.
			if detail.GetDomain() == "turnledger" {
				failure.Reason = detail.GetReason()
			}
		case *errdetails.RetryInfo:
			failure.RetryAfter = detail.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			for _, violation := range detail.GetFieldViolations() {
				failure.Violations = append(failure.Violations, Violation{violation.GetField(), violation.GetDescription()})
			}
		}
	}
	if failure.Reason == "" {
		failure.Reason = failure.Code
		if said.Code() == codes.Unavailable {
			failure.Reason = ReasonUnreachable
		}
	}
	return failure
}

var codeNames = map[codes.Code]string{
	codes.OK: "OK", codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

func codeName(code codes.Code) string {
	if name, ok := codeNames[code]; ok {
		return name
	}
	return "UNKNOWN"
}
