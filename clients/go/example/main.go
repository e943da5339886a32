// A turn from its history to its receipt: go run ./example unix:///run/turnledger/turnledger.sock
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	turnledger "github.com/turnledger/turnledger/clients/go"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: example unix:///path/to.sock")
	}
	ledger, err := turnledger.New(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()
	ctx, triggers := context.Background(), []string{"delivery-7f3a"}

	turn, err := ledger.Begin(ctx, turnledger.Beginning{Keys: turnledger.Keys{
		AgentHandle: "support", ConversationKey: "jira:POC-7", TurnID: "0a1b2c3d", WorkKey: turnledger.WorkKey(triggers...),
	}})
	if err != nil {
		log.Fatal(err)
	}
	if turn.AlreadyRecorded {
		fmt.Println("the trigger came a second time: it was answered")
		return
	}
	prompt, err := turn.UserMessage(ctx, turnledger.Round{Phase: turnledger.Execute, Task: "Where is my order 20931?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prompt)

	// ... the model answers the prompt, and calls tools:
	turn.Called(turnledger.ToolCall{Name: "get_order", Arguments: `{"order_id": 20931}`, Kind: turnledger.Read})

	receipt, err := turn.Complete(ctx, turnledger.Completion{
		Reply: turnledger.Text("It ships on Friday."), Trigger: "Where is my order 20931?",
	})
	if err != nil {
		log.Fatal(err)
	}
	if receipt.Failure != nil {
		fmt.Println("\nnot recorded:", receipt.Failure)
		return
	}
	fmt.Printf("\n%s as entry %d\n", receipt.Disposition, receipt.Ordinal)
}
