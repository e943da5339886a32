/** A turn through a real sidecar. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { InvalidSavedTurn, Ledger, LedgerError, type LedgerEvent, type TurnKeys } from "@turnledger/client";
import { Folder, Sidecar } from "./sidecar.js";

let folder: Folder;
let sidecar: Sidecar | undefined;

before(async () => {
  folder = await Folder.make();
  sidecar = await Sidecar.start(folder);
});

after(async () => {
  await sidecar?.[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Keys of a turn in a conversation of its own. */
function keys(given: Partial<TurnKeys> = {}): TurnKeys {
  const seat = randomUUID();
  return { agentHandle: seat, conversationKey: "jira:POC-7", turnId: "0a1b2c3d", workKey: "5f0c9e", ...given };
}

test("the next turn of a conversation is told what the one before said and did", async () => {
  await using ledger = new Ledger(folder.target);
  const first = await ledger.begin(keys());
  assert.equal(first.history?.state, "empty");
  first.called("get_order", '{"order_id": 20931000000000000000001}', { kind: "read" });
  first.called("refund", '{"iban": "DE02"}', { error: "closed", sensitive: ["iban"] });
  const receipt = await first.complete({
    reply: "It ships on Friday.",
    trigger: "Where is my order?",
    decision: "failed",
  });
  assert.deepEqual(
    [receipt.disposition, receipt.ordinal, receipt.failure, receipt.attempts, receipt.inLedger],
    ["recorded", 1n, null, 1, true],
  );
  const next = await ledger.begin({ ...first.keys, turnId: "1b2c3d4e", workKey: "6a1d0f" });
  const text = next.history?.text ?? "";
  for (const line of [
    '- get_order({"order_id":20931000000000000000001}) → success (read)',
    '- refund({"iban":(withheld)}) → error: closed',
    "| It ships on Friday.",
    "Turn ended: failed",
  ]) {
    assert.ok(text.split("\n").includes(line), `the block lacks ${line}`);
  }
  assert.equal(next.history?.bytes, BigInt(Buffer.byteLength(text)));
  assert.equal(await next.userMessage({ phase: "execute", task: "Thanks!" }), `${text}\n\n## Task\n\nThanks!`);
  assert.equal(await next.userMessage({ phase: "review", task: "Thanks!" }), "## Task\n\nThanks!");
  assert.equal(ledger.stats.composedBySidecar, 2);
});

test("a hundred completions of one work key at once leave one entry", async () => {
  await using ledger = new Ledger(folder.target);
  const turn = await ledger.begin(keys());
  const ends = Array.from({ length: 100 }, () => turn.complete({ reply: "Done.", trigger: "Do it." }));
  const receipts = await Promise.all(ends);
  assert.equal(new Set(receipts.map((receipt) => receipt.entryId)).size, 1);
  assert.equal(ledger.stats.recorded, 1);
  assert.equal(ledger.stats.duplicates, 99);
});

test("a redelivery is known at the turn's beginning", async () => {
  await using ledger = new Ledger(folder.target);
  const turn = await ledger.begin(keys());
  assert.equal(turn.alreadyRecorded, false);
  await turn.complete({ reply: "Done.", trigger: "Do it." });
  assert.equal((await ledger.begin(turn.keys)).alreadyRecorded, true);
});

test("a suspended turn is recorded by the run that resumes it, with the same frozen block", async () => {
  await using ledger = new Ledger(folder.target);
  const first = await ledger.begin(keys());
  await first.complete({ reply: "Hello 🙂.", trigger: "Hi." });
  const turn = await ledger.begin({ ...first.keys, turnId: "1b2c3d4e", workKey: "6a1d0f" });
  const message = await turn.userMessage({ phase: "execute", task: "Go on." });
  turn.called("send", '{"to": "a", "token": 12345678901234567890}', { sensitive: ["token"] });
  const saved = turn.save();
  assert.match(saved, /^[ -~]*$/, "the saved form is ASCII");
  assert.ok(!saved.includes("12345678901234567890"), "a sensitive value leaves the engine's memory");
  assert.equal((await turn.suspended()).skipReason, "run_suspended");

  await using elsewhere = new Ledger("unix:///nobody/is/here");
  const away = elsewhere.resume(saved);
  assert.equal(await away.userMessage({ phase: "execute", task: "Go on." }), message);
  assert.equal(elsewhere.stats.composedLocally, 1);

  const resumed = ledger.resume(saved);
  assert.deepEqual(resumed.history, turn.history);
  assert.equal((await resumed.complete({ unsent: "Sent.", trigger: "Go on." })).disposition, "recorded");
  const after = await ledger.begin({ ...first.keys, turnId: "2c3d4e5f", workKey: "7b2e1a" });
  assert.match(after.history?.text ?? "", /- send\(\{"to":"a","token":\(withheld\)\}\) → success/);
});

test("rounds are counted within their phase, and go on after a resume", async () => {
  const iterations: string[] = [];
  const onEvent = (event: LedgerEvent) => {
    if (event.type === "message_composed") iterations.push(`${event.phase} ${event.iteration}`);
  };
  await using ledger = new Ledger(folder.target, { onEvent });
  const turn = await ledger.begin(keys());
  await turn.userMessage({ phase: "execute", task: "a" });
  await turn.userMessage({ phase: "execute", task: "a" });
  await turn.userMessage({ phase: "review", task: "a" });
  await ledger.resume(turn.save()).userMessage({ phase: "execute", task: "a" });
  assert.deepEqual(iterations, ["execute 1", "execute 2", "review 1", "execute 3"]);
});

test("what was unsent becomes a reply once it is settled", async () => {
  await using ledger = new Ledger(folder.target);
  const turn = await ledger.begin(keys());
  assert.equal((await ledger.settle(turn.keys)).outcome, "not_found");
  await turn.complete({ unsent: "", trigger: "Hi." });
  assert.equal((await ledger.settle(turn.keys)).outcome, "settled");
  assert.equal((await ledger.settle(turn.keys)).outcome, "already_reply");
});

test("each scope forgets what it names and no more", async () => {
  await using ledger = new Ledger(folder.target);
  const turns = [
    keys(),
    ...["b", "c"].map((workKey) => ({ workKey })),
    { workKey: "d", conversationKey: "jira:POC-8" },
  ].map((given, index, all) => ({ ...(all[0] as TurnKeys), ...given, turnId: `0000000${index}` }));
  const [first] = turns as [TurnKeys];
  for (const one of turns) await (await ledger.begin(one)).complete({ reply: "Done.", trigger: "Do it." });
  const { agentHandle, conversationKey } = first;
  assert.equal((await ledger.forget({ scope: "turn", ...first })).forgotten, 1n);
  assert.equal((await ledger.forget({ scope: "conversation", agentHandle, conversationKey })).forgotten, 2n);
  assert.deepEqual(await ledger.forget({ scope: "seat", agentHandle }), { forgotten: 1n, erasure: "complete" });
  assert.equal(ledger.stats.forgotten, 4);
  const again = await (await ledger.begin(first)).complete({ reply: "Done.", trigger: "Do it." });
  assert.equal(again.skipReason, "forgotten");
});

test("a forget that did not happen is an error with its reason, and an empty key never widens it", async () => {
  await using ledger = new Ledger(folder.target);
  await assert.rejects(
    ledger.forget({ scope: "conversation", agentHandle: randomUUID(), conversationKey: "" }),
    (error) => error instanceof LedgerError && error.failure.reason === "INVALID",
  );
  // @ts-expect-error the types refuse it too
  await assert.rejects(ledger.forget({ agentHandle: "a" }), TypeError);
});

test("a refused entry names its fields, never throws, and no hook or log line has its content", async () => {
  const heard: string[] = [];
  const listen = (line: unknown) => heard.push(typeof line === "string" ? line : JSON.stringify(line));
  await using ledger = new Ledger(folder.target, {
    logger: { warn: listen, info: listen, debug: listen },
    onEvent: (event) =>
      heard.push(JSON.stringify(event, (_, value) => (typeof value === "bigint" ? `${value}` : value))),
  });
  const turn = await ledger.begin(keys());
  turn.called("", '{"secret": 1}', { error: "secret" });
  await turn.userMessage({ phase: "execute", task: "secret", context: "secret" });
  const receipt = await turn.complete({ reply: "secret", trigger: "secret\ud800", decision: "No Secret" });
  assert.equal(receipt.failure?.reason, "INVALID");
  assert.deepEqual(receipt.failure?.violations.map(({ field }) => field).sort(), [
    "entry.calls[0].name",
    "entry.decision",
  ]);
  assert.ok(heard.length > 3);
  assert.ok(heard.some((line) => line.includes("entry.trigger")));
  assert.deepEqual(
    heard.filter((line) => /secret/i.test(line)),
    [],
  );
});

test("what an engine gives wrongly is refused before anything is sent", async () => {
  await using ledger = new Ledger(folder.target);
  const turn = await ledger.begin(keys());
  const round = { phase: "execute", task: "a" } as const;
  for (const wrong of [
    { iteration: 0 },
    { iteration: 1.5 },
    { iteration: 2 ** 32 },
    { systemBytes: -1 },
    { toolBytes: 2 ** 53 },
    { toolBytes: 2n ** 64n },
    { phase: "plan" as "execute" },
  ]) {
    await assert.rejects(turn.userMessage({ ...round, ...wrong }), RangeError, JSON.stringify(Object.keys(wrong)));
  }
  await turn.userMessage({ ...round, toolBytes: 2n ** 64n - 1n });
  assert.equal(ledger.stats.composedBySidecar, 1);
  await assert.rejects(ledger.begin({ ...keys(), hardLimitBytes: -1 }), RangeError);
  await assert.rejects(ledger.begin({ ...keys(), workKey: 5 as unknown as string }), TypeError);
  await assert.rejects(turn.complete({ trigger: "a" } as unknown as { reply: string; trigger: string }), TypeError);
  await assert.rejects(turn.complete({ reply: "a", trigger: "a", completedAt: new Date("never") }), RangeError);
  assert.throws(() => turn.called("a", {} as unknown as string), TypeError);
  assert.throws(() => turn.called("a", "{}", { sensitive: "iban" }), TypeError);
  assert.throws(() => ledger.resume("{}"), InvalidSavedTurn);
  for (const target of ["/run/s", "unix:", "unix:///", "localhost", "http://a:1"]) {
    assert.throws(() => new Ledger(target), RangeError, target);
  }
  assert.throws(() => new Ledger(folder.target, { deadlines: { beginMs: 0 } }), RangeError);
});

test("an aborted signal rejects a call with its reason, and the ledger goes on", async () => {
  await using ledger = new Ledger(folder.target);
  const reason = new Error("the user left");
  await assert.rejects(ledger.begin({ ...keys(), signal: AbortSignal.abort(reason) }), reason);
  const turn = await ledger.begin(keys());
  const controller = new AbortController();
  const completing = turn.complete({ reply: "a", trigger: "a", signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(completing, reason);
  assert.ok((await turn.complete({ reply: "a", trigger: "a" })).inLedger);
});

test("hooks that fail, at once or later, are counted and cost a turn nothing", async () => {
  const fail = () => {
    throw new Error("secret");
  };
  const lines: string[] = [];
  await using ledger = new Ledger(folder.target, {
    onEvent: async () => fail(),
    propagate: fail,
    logger: { warn: (line) => lines.push(line) },
  });
  const turn = await ledger.begin(keys());
  assert.equal(turn.readFailure, null);
  await new Promise(setImmediate);
  assert.equal(ledger.stats.hookFailures, 2);
  assert.deepEqual(
    lines.filter((line) => line.includes("secret")),
    [],
  );
  await using silent = new Ledger("unix:///nobody/is/here", { logger: { warn: fail } });
  assert.equal((await silent.begin(keys())).readFailure?.reason, "UNREACHABLE");
  assert.equal(silent.stats.hookFailures, 1);
});

test("headers that cannot be sent are left out, and the call is made", async () => {
  await using ledger = new Ledger(folder.target, {
    propagate: (headers) => {
      headers["traceparent"] = "a\nb";
    },
  });
  assert.equal((await ledger.begin(keys())).readFailure, null);
  assert.equal(ledger.stats.hookFailures, 1);
});
