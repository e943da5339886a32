/** Orders: filled behind the turn by the engine's rewriter, with a real sidecar judging. */

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Ledger, type LedgerOptions, NoBudget, type Order, type OrderFilled, type Rewriter } from "@turnledger/client";
import { Folder, Sidecar } from "./sidecar.js";

const BODY = "The statement confirms the transfer that was asked for. ";

let folder: Folder;
let sidecar: Sidecar | undefined;

before(async () => {
  folder = await Folder.make();
  sidecar = await Sidecar.start(folder, "max_entries: 100");
});

after(async () => {
  await sidecar?.[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Complete a turn of a new conversation with so many different bulky arguments; what became of its orders. */
async function filled(rewriter: Rewriter, count = 1, options: LedgerOptions = {}) {
  const events: OrderFilled[] = [];
  const ledger = new Ledger(folder.target, {
    logger: {},
    rewriter,
    onEvent: (event) => event.type === "order_filled" && events.push(event),
    ...options,
  });
  const seat = randomUUID();
  const turn = await ledger.begin({ agentHandle: seat, conversationKey: "c", turnId: "0a1b2c3d", workKey: "a" });
  for (let each = 0; each < count; each += 1) {
    turn.called("send", JSON.stringify({ body: BODY.repeat(5 + each) }));
  }
  const receipt = await turn.complete({ reply: "Done.", trigger: "Do it." });
  assert.equal(receipt.disposition, "recorded");
  const next = async () => (await ledger.begin({ ...turn.keys, workKey: "b" })).history?.text ?? "";
  return { ledger, events, turn, next, [Symbol.asyncDispose]: () => ledger.close() };
}

test("a rewrite stands in the next block, and what it took is counted", async () => {
  await using came = await filled(() => ({
    text: "A transfer is confirmed.",
    promptTokens: 340,
    completionTokens: 10,
  }));
  assert.equal(await came.ledger.drain(5_000), true);
  assert.match(await came.next(), /\(condensed\) "?A transfer is confirmed\./);
  const { ordersAccepted, rewriterCalls, rewriterPromptTokens, rewriterCompletionTokens } = came.ledger.stats;
  assert.deepEqual([ordersAccepted, rewriterCalls, rewriterPromptTokens, rewriterCompletionTokens], [1, 1, 340, 10]);
  const [event] = came.events;
  assert.deepEqual(
    [event?.kind, event?.outcome, event?.verdict, event?.calls],
    ["argument", "accepted", "accepted", 1],
  );
});

test("a rewrite that is too long is tried once more, and told by how much", async () => {
  const orders: Order[] = [];
  await using came = await filled(async (order) => {
    orders.push(order);
    return order.attempt === 1 ? "x".repeat(order.limitBytes + 17) : "A transfer.";
  });
  assert.equal(await came.ledger.drain(5_000), true);
  const [first, second] = orders;
  assert.equal(first?.prompt, `${first?.instructions}${first?.text}${first?.closing}`);
  assert.deepEqual([first?.remark, first?.rejection, first?.overByBytes], ["", null, 0]);
  assert.deepEqual([second?.attempt, second?.rejection, second?.overByBytes], [2, "too_long", 17]);
  assert.match(second?.remark ?? "", /17 bytes too long/);
  assert.deepEqual(
    came.events.map(({ outcome, calls }) => [outcome, calls]),
    [["accepted", 2]],
  );
});

test("no more than so many calls run at once, and those that were given up keep their place", async () => {
  let [running, most] = [0, 0];
  const rewriter: Rewriter = async () => {
    running += 1;
    most = Math.max(most, running);
    await sleep(300); // deaf to its signal
    running -= 1;
    return "A transfer.";
  };
  await using came = await filled(rewriter, 6, { rewritesAtOnce: 2, deadlines: { rewriteMs: 200 } });
  assert.equal(await came.ledger.drain(5_000), true);
  assert.equal(most, 2);
  assert.equal(came.ledger.stats.ordersDeadline, 6);
  assert.equal(came.ledger.stats.rewriterCalls, 2);
});

test("the first order that finds no budget ends its batch, and what is thrown is told by its name alone", async () => {
  await using poor = await filled(
    () => {
      throw new NoBudget();
    },
    4,
    { rewritesAtOnce: 1 },
  );
  assert.equal(await poor.ledger.drain(5_000), true);
  assert.deepEqual([poor.ledger.stats.ordersNoBudget, poor.ledger.stats.rewriterCalls], [4, 1]);

  await using broken = await filled(async (order) => {
    throw new TypeError(order.text);
  });
  assert.equal(await broken.ledger.drain(5_000), true);
  assert.deepEqual(
    broken.events.map(({ outcome, error }) => [outcome, error]),
    [["error", "TypeError"]],
  );

  await using odd = await filled(() => ({ text: 5 }) as unknown as string);
  assert.equal(await odd.ledger.drain(5_000), true);
  assert.equal(odd.ledger.stats.ordersError, 1);
});

test("close gives orders their time, then gives up what is left, aborts its signal and says so", async () => {
  let aborted = 0;
  const rewriter: Rewriter = (_, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        aborted += 1;
        reject(signal.reason);
      });
    });
  const came = await filled(rewriter, 5, { deadlines: { closeMs: 100 } });
  await came.ledger.close();
  assert.equal(came.ledger.stats.ordersAbandoned, 5);
  assert.equal(aborted, 3);
});

test("a turn that its budget ended is not rewritten", async () => {
  let calls = 0;
  await using ledger = new Ledger(folder.target, {
    logger: {},
    rewriter: () => {
      calls += 1;
      return "A transfer.";
    },
  });
  const turn = await ledger.begin({
    agentHandle: randomUUID(),
    conversationKey: "c",
    turnId: "0a1b2c3d",
    workKey: "a",
  });
  turn.called("send", JSON.stringify({ body: BODY.repeat(5) }));
  await turn.complete({ reply: "Done.", trigger: "Do it.", rewrite: false });
  assert.equal(await ledger.drain(5_000), true);
  assert.equal(calls, 0);
});

test("the rewriter, the hooks and the headers of a fit run in the async context of their turn", async () => {
  const trace = new AsyncLocalStorage<string>();
  const seen = new Set<string | undefined>();
  const see = () => seen.add(trace.getStore());
  await using ledger = new Ledger(folder.target, {
    logger: {},
    rewritesAtOnce: 1,
    rewriter: async () => {
      see();
      await sleep(20);
      return "A transfer.";
    },
    onEvent: see,
    propagate: see,
  });
  const turnIn = (name: string) =>
    trace.run(name, async () => {
      const turn = await ledger.begin({ agentHandle: name, conversationKey: "c", turnId: "0a1b2c3d", workKey: "a" });
      turn.called("send", JSON.stringify({ body: `${name} ${BODY.repeat(5)}` }));
      await turn.complete({ reply: "Done.", trigger: "Do it." });
      seen.clear();
    });
  await turnIn("one");
  await turnIn("two");
  assert.equal(await ledger.drain(5_000), true);
  assert.ok(seen.has("two"), "the second order ran in its own turn's context");
  assert.ok(!seen.has(undefined));
});

test("a turn that waits for notes gets them in its block, and one that does not finds them in the next", async () => {
  await using ledger = new Ledger(folder.target, {
    logger: {},
    rewriter: (order) => (order.kind === "note" ? "It was about a transfer." : "A transfer."),
  });
  const keys = { agentHandle: randomUUID(), conversationKey: "c", turnId: "0a1b2c3d" };
  await using plain = new Ledger(folder.target, { logger: {} });
  for (let each = 0; each < 30; each += 1) {
    const turn = await plain.begin({ ...keys, workKey: `w${each}` });
    await turn.complete({ reply: BODY.repeat(30), trigger: "Do it." });
  }
  const before = await plain.begin({ ...keys, workKey: "" });
  assert.ok(!before.history?.text.includes("| It was about a transfer."));
  const waited = await ledger.begin({ ...keys, workKey: "", waitForNotes: true });
  assert.ok((waited.history?.condensed ?? 0) > 0);
  assert.ok(waited.history?.text.includes("| It was about a transfer."));
});
