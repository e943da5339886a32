package turnledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/turnledger/turnledger/clients/go/gen/turnledgerv1"
)

// call is one RPC, ready to be made as often as a rule allows. decode fails at what the contract does not allow.
type call[A any] struct {
	path    string
	size    int
	request func() []byte
	decode  func([]byte) (A, error)
}

func newCall[A any, M any, P interface {
	*M
	proto.Message
}](path string, ask proto.Message, read func(P) (A, error)) call[A] {
	return call[A]{
		path: "/turnledger.v1." + path,
		size: proto.Size(ask),
		request: func() []byte {
			bytes, _ := proto.Marshal(ask) // every text was repaired, so there is nothing that could fail
			return bytes
		},
		decode: func(bytes []byte) (A, error) {
			answer := P(new(M))
			if err := proto.Unmarshal(bytes, answer); err != nil {
				var nothing A
				return nothing, err
			}
			return read(answer)
		},
	}
}

type historyAnswer struct {
	history         *History
	alreadyRecorded bool
	orders          []issuedOrder
}

func historyCall(keys Keys, hardLimitBytes uint64) call[historyAnswer] {
	ask := &pb.HistoryRequest{
		AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey, WorkKey: keys.WorkKey,
		HardLimitBytes: hardLimitBytes,
	}
	return newCall("Render/History", ask, func(said *pb.HistoryResponse) (historyAnswer, error) {
		history, err := historyOf(said.GetHistory())
		return historyAnswer{history, said.GetAlreadyRecorded(), ordersOf(said.GetOrders())}, err
	})
}

func messageCall(keys Keys, history *History, given Round, iteration uint32, parts Parts) call[string] {
	ask := &pb.UserMessageRequest{
		AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey, TurnId: keys.TurnID,
		Phase: phases[given.Phase], Iteration: iteration, Context: parts.Context, Task: parts.Task,
		PriorWork: parts.PriorWork, SystemBytes: given.SystemBytes, ToolBytes: given.ToolBytes,
	}
	if history != nil {
		ask.History = &pb.History{
			State: historyStates[history.State], Text: history.Text, Digest: history.Digest, Bytes: history.Bytes,
			Shown: history.Shown, Condensed: history.Condensed, LeftOut: history.LeftOut,
			NoLongerKept: history.NoLongerKept, Unreadable: history.Unreadable,
		}
	}
	return newCall("Render/UserMessage", ask, func(said *pb.UserMessageResponse) (string, error) {
		return said.GetText(), nil
	})
}

type appendAnswer struct {
	disposition Disposition
	skipReason  string
	entryID     string
	ordinal     uint64
	orders      []issuedOrder
}

// entry is the material of a completed turn, its text valid.
type entry struct {
	completion Completion
	reply      *string
	unsent     *string
	calls      []recordedCall
}

func appendCall(keys Keys, runEnd string, material *entry) call[appendAnswer] {
	ask := &pb.AppendRequest{
		AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey, WorkKey: keys.WorkKey, RunEnd: runEnds[runEnd],
	}
	if material != nil {
		ask.Entry = entryMessage(keys.TurnID, material)
	}
	return newCall("Record/Append", ask, func(said *pb.AppendResponse) (appendAnswer, error) {
		disposition, err := named(dispositions, said.GetDisposition())
		if err == nil && (disposition == Skipped) == (said.GetEntryId() != "") {
			err = errors.New("the entry's id does not go with the disposition")
		}
		reason, _ := named(skipReasons, said.GetSkipReason()) // none, or one of a newer sidecar: skipped is skipped
		return appendAnswer{disposition, reason, said.GetEntryId(), said.GetOrdinal(), ordersOf(said.GetOrders())}, err
	})
}

func entryMessage(turnID string, material *entry) *pb.Entry {
	completion := material.completion
	message := &pb.Entry{
		TurnId: turnID, CompletedAt: timestamppb.New(completion.CompletedAt), Trigger: completion.Trigger,
		Intent: completion.Intent, CompletedWork: completion.CompletedWork, BlockedOn: completion.BlockedOn,
		Decision: completion.Decision,
	}
	if material.reply != nil {
		message.Outcome = &pb.Entry_Reply{Reply: *material.reply}
	} else {
		message.Outcome = &pb.Entry_Unsent{Unsent: *material.unsent}
	}
	for _, made := range material.calls {
		message.Calls = append(message.Calls, &pb.ToolCall{
			Name: made.Name, Arguments: made.Arguments, Kind: callKinds[made.Kind], Failed: made.Failed, Error: made.Error,
			Sensitive: made.Sensitive,
		})
	}
	return message
}

type fitAnswer struct {
	verdict     string
	overByBytes uint32
}

func fitCall(keys Keys, orderID, original, rewrite string) call[fitAnswer] {
	ask := &pb.FitRequest{
		AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey,
		Fits: []*pb.Fit{{OrderId: orderID, Original: original, Rewrite: rewrite}},
	}
	return newCall("Record/Fit", ask, func(said *pb.FitResponse) (fitAnswer, error) {
		if len(said.GetResults()) != 1 {
			return fitAnswer{}, errors.New("one fit has one result")
		}
		verdict, err := named(verdicts, said.GetResults()[0].GetVerdict())
		return fitAnswer{verdict, said.GetResults()[0].GetOverByBytes()}, err
	})
}

type settleAnswer struct{ outcome, entryID string }

func settleCall(keys Keys) call[settleAnswer] {
	ask := &pb.SettleRequest{
		AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey, WorkKey: keys.WorkKey,
	}
	return newCall("Record/Settle", ask, func(said *pb.SettleResponse) (settleAnswer, error) {
		outcome, err := named(settleOutcomes, said.GetOutcome())
		return settleAnswer{outcome, said.GetEntryId()}, err
	})
}

func forgetCall(scope Scope) call[Forgotten] {
	ask := &pb.ForgetRequest{}
	switch keys := scope.keys; scope.kind {
	case "turn":
		ask.Scope = &pb.ForgetRequest_Turn{Turn: &pb.TurnScope{
			AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey, WorkKey: keys.WorkKey,
		}}
	case "conversation":
		ask.Scope = &pb.ForgetRequest_Conversation{Conversation: &pb.ConversationScope{
			AgentHandle: keys.AgentHandle, ConversationKey: keys.ConversationKey,
		}}
	default:
		ask.Scope = &pb.ForgetRequest_Seat{Seat: &pb.SeatScope{AgentHandle: keys.AgentHandle}}
	}
	return newCall("Record/Forget", ask, func(said *pb.ForgetResponse) (Forgotten, error) {
		erasure, err := named(erasures, said.GetErasure())
		return Forgotten{said.GetForgotten(), erasure}, err
	})
}

func historyOf(said *pb.History) (*History, error) {
	state, err := named(historyStates, said.GetState())
	if err != nil {
		return nil, err
	}
	if (said.GetText() != "") != (state == Present) {
		return nil, errors.New("the history's text does not go with its state")
	}
	if said.GetDigest() != digestOf(said.GetText()) {
		return nil, errors.New("the history's text does not go with its digest")
	}
	return &History{
		State: state, Text: said.GetText(), Digest: said.GetDigest(), Bytes: said.GetBytes(), Shown: said.GetShown(),
		Condensed: said.GetCondensed(), LeftOut: said.GetLeftOut(), NoLongerKept: said.GetNoLongerKept(),
		Unreadable: said.GetUnreadable(),
	}, nil
}

func digestOf(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// ordersOf are the orders of a kind that this library knows: no other may cost the answer that carries it.
func ordersOf(messages []*pb.Order) []issuedOrder {
	var orders []issuedOrder
	for _, message := range messages {
		if kind, err := named(orderKinds, message.GetKind()); err == nil {
			orders = append(orders, issuedOrder{
				id: message.GetOrderId(), kind: kind, text: message.GetText(), limitBytes: message.GetLimitBytes(),
				instructions: message.GetInstructions(), closing: message.GetClosing(),
			})
		}
	}
	return orders
}

// named is an enum's value as this library names it; an error for what is not in the table.
func named[N comparable, V comparable](values map[N]V, value V) (N, error) {
	for name, each := range values {
		if each == value {
			return name, nil
		}
	}
	var nothing N
	return nothing, fmt.Errorf("an enum has the unknown value %v", value)
}

var (
	phases = map[Phase]pb.Phase{
		Execute: pb.Phase_PHASE_EXECUTE, Review: pb.Phase_PHASE_REVIEW, Other: pb.Phase_PHASE_OTHER,
	}
	historyStates = map[HistoryState]pb.HistoryState{
		Present:  pb.HistoryState_HISTORY_STATE_PRESENT,
		Empty:    pb.HistoryState_HISTORY_STATE_EMPTY,
		Disabled: pb.HistoryState_HISTORY_STATE_DISABLED,
	}
	runEnds = map[string]pb.RunEnd{
		"completed": pb.RunEnd_RUN_END_COMPLETED, "crashed": pb.RunEnd_RUN_END_CRASHED, "suspended": pb.RunEnd_RUN_END_SUSPENDED,
	}
	callKinds = map[CallKind]pb.CallKind{
		Write: pb.CallKind_CALL_KIND_WRITE, Read: pb.CallKind_CALL_KIND_READ, Meta: pb.CallKind_CALL_KIND_META,
	}
	orderKinds = map[string]pb.OrderKind{
		"argument": pb.OrderKind_ORDER_KIND_ARGUMENT, "error": pb.OrderKind_ORDER_KIND_ERROR, "note": pb.OrderKind_ORDER_KIND_NOTE,
	}
	dispositions = map[Disposition]pb.Disposition{
		Recorded:  pb.Disposition_DISPOSITION_RECORDED,
		Duplicate: pb.Disposition_DISPOSITION_DUPLICATE,
		Skipped:   pb.Disposition_DISPOSITION_SKIPPED,
	}
	skipReasons = map[string]pb.SkipReason{
		"disabled":         pb.SkipReason_SKIP_REASON_DISABLED,
		"run_crashed":      pb.SkipReason_SKIP_REASON_RUN_CRASHED,
		"run_suspended":    pb.SkipReason_SKIP_REASON_RUN_SUSPENDED,
		"not_reproducible": pb.SkipReason_SKIP_REASON_NOT_REPRODUCIBLE,
		"no_work_key":      pb.SkipReason_SKIP_REASON_NO_WORK_KEY,
		"forgotten":        pb.SkipReason_SKIP_REASON_FORGOTTEN,
	}
	verdicts = map[string]pb.Verdict{
		"accepted": pb.Verdict_VERDICT_ACCEPTED, "not_open": pb.Verdict_VERDICT_NOT_OPEN,
		"original_mismatch": pb.Verdict_VERDICT_ORIGINAL_MISMATCH, "too_long": pb.Verdict_VERDICT_TOO_LONG,
		"empty": pb.Verdict_VERDICT_EMPTY, "echo": pb.Verdict_VERDICT_ECHO, "invented": pb.Verdict_VERDICT_INVENTED,
		"invalid_text": pb.Verdict_VERDICT_INVALID_TEXT,
	}
	settleOutcomes = map[string]pb.SettleOutcome{
		"settled":        pb.SettleOutcome_SETTLE_OUTCOME_SETTLED,
		"already_reply":  pb.SettleOutcome_SETTLE_OUTCOME_ALREADY_REPLY,
		"not_found":      pb.SettleOutcome_SETTLE_OUTCOME_NOT_FOUND,
		"no_longer_kept": pb.SettleOutcome_SETTLE_OUTCOME_NO_LONGER_KEPT,
	}
	erasures = map[string]pb.Erasure{"complete": pb.Erasure_ERASURE_COMPLETE, "pending": pb.Erasure_ERASURE_PENDING}
)

// moment is the time that an entry ended at.
func moment(given time.Time) time.Time {
	if given.IsZero() {
		return time.Now()
	}
	return given
}
