/** A program of a test's: a turn, an order that hangs and a call in flight, and then it has nothing left to do. */

import { Ledger } from "@turnledger/client";

const [target = "", manner] = process.argv.slice(2);
const ledger = new Ledger(target, {
  logger: {},
  deadlines: { beginMs: 200, completeMs: 200, closeMs: 100, rewriteMs: 60_000 },
  rewriter: () => new Promise(() => {}),
});
const turn = await ledger.begin({
  agentHandle: "a",
  conversationKey: "c",
  turnId: "0a1b2c3d",
  workKey: `${process.pid}`,
});
turn.called("send", JSON.stringify({ body: "word ".repeat(100) }));
await turn.complete({ reply: "Done.", trigger: "Do it." });
if (manner === "close") {
  void turn.complete({ reply: "Done.", trigger: "Do it." });
  await ledger.close();
}
console.log("over");
