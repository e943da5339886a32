// Package turnledger is the client of the conversation session ledger: what did I already say and do here?
//
// A turn of an engine begins, which reads its conversation's history once and freezes it; asks for the user message of each
// round; and completes, which records it:
//
//	ledger, err := turnledger.New("unix:///run/turnledger/turnledger.sock")
//	turn, err := ledger.Begin(ctx, turnledger.Beginning{Keys: turnledger.Keys{...}})
//	prompt, err := turn.UserMessage(ctx, turnledger.Round{Phase: turnledger.Execute, Task: "Where is my order?"})
//	turn.Called(turnledger.ToolCall{Name: "get_order", Arguments: `{"order_id": 20931}`, Kind: turnledger.Read})
//	receipt, err := turn.Complete(ctx, turnledger.Completion{Reply: turnledger.Text("It ships."), Trigger: "..."})
//
// Nothing fails because of the sidecar: a history that cannot be read leaves [Turn.History] nil and the reason in
// [Turn.ReadFailure], a round is composed here where the sidecar does not answer, and a turn that could not be recorded has
// the reason in [Receipt.Failure]. All of it is logged and counted. An error is what the engine itself did: a context that
// was cancelled, or an argument out of range ([ErrArgument]). [Ledger.Forget] alone returns a failure of the service.
//
// Everything here may be used from many goroutines at once.
package turnledger
