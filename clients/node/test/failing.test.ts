/** Failing open: with a sidecar that is dead, hung, killed or closed, a turn runs on. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Metadata } from "@grpc/grpc-js";
import { DEFAULT_DEADLINES, Failure, Ledger } from "@turnledger/client";
import { Asker } from "../src/asking.js";
import { Channel } from "../src/channel.js";
import { asTheContractAllows } from "../src/retry.js";
import { Counters } from "../src/stats.js";
import { settleCall } from "../src/wire.js";
import { refusing } from "./refusing.js";
import { Folder, freePort, HungSidecar, Sidecar } from "./sidecar.js";

const KEYS = { agentHandle: "support", conversationKey: "jira:POC-7", turnId: "0a1b2c3d", workKey: "5f0c9e" };
const DONE = { reply: "Done.", trigger: "Do it." };
const silent = { logger: {} };

test("with nobody at the address a turn begins at once, without history, and composes its messages", async () => {
  await using ledger = new Ledger("unix:///nobody/is/here", { ...silent, deadlines: { completeMs: 200 } });
  const turn = await ledger.begin(KEYS);
  assert.equal(turn.history, null);
  assert.equal(turn.readFailure?.reason, "UNREACHABLE");
  assert.equal(await turn.userMessage({ phase: "execute", task: "Go." }), "## Task\n\nGo.");
  const receipt = await turn.complete(DONE);
  assert.equal(receipt.failure?.reason, "UNREACHABLE");
  assert.ok(receipt.attempts > 1, "a completion persists");
  assert.equal((await turn.crashed()).attempts, 1);
  const { readFailures, composedLocally, writeFailures, runEndFailures } = ledger.stats;
  assert.deepEqual([readFailures, composedLocally, writeFailures, runEndFailures], [1, 1, 1, 1]);
});

test("a hung sidecar costs the deadline once, and then a tenth of it for each round", async () => {
  await using folder = await Folder.make();
  await using _ = await HungSidecar.start(folder);
  await using ledger = new Ledger(folder.target, { ...silent, deadlines: { beginMs: 300 } });
  const turn = await ledger.begin(KEYS);
  assert.equal(turn.readFailure?.reason, "DEADLINE_EXCEEDED");
  const began = performance.now();
  for (let round = 0; round < 10; round += 1) await turn.userMessage({ phase: "execute", task: "Go." });
  const ms = performance.now() - began;
  assert.ok(ms < 2_500, `ten rounds took ${ms} ms, where ten full waits are 5 000`);
});

test("one that accepts and says nothing is given up, and whoever takes its place is found", async () => {
  await using folder = await Folder.make();
  await using hung = await HungSidecar.start(folder);
  await using ledger = new Ledger(folder.target, { ...silent, deadlines: { beginMs: 700 } });
  assert.equal((await ledger.begin(KEYS)).readFailure?.reason, "DEADLINE_EXCEEDED");
  hung.stopListening();
  await using _ = await Sidecar.start(folder);
  let failure = (await ledger.begin(KEYS)).readFailure;
  for (let tries = 0; failure !== null && tries < 10; tries += 1) failure = (await ledger.begin(KEYS)).readFailure;
  assert.equal(failure, null);
});

for (const kind of ["a Unix socket", "an address of the loopback interface", "a name"]) {
  test(`a completion outlives a sidecar that is killed and comes back, on ${kind}`, async () => {
    await using folder = await Folder.make();
    const port = await freePort();
    const listen = kind === "a Unix socket" ? folder.target : `127.0.0.1:${port}`;
    const sidecar = await Sidecar.start(folder, undefined, listen);
    await using ledger = new Ledger(kind === "a name" ? `localhost:${port}` : listen, silent);
    const turn = await ledger.begin(KEYS);
    assert.equal(turn.readFailure, null);
    await sidecar.kill();
    const completing = turn.complete(DONE);
    await sleep(100);
    await using _ = await Sidecar.start(folder, undefined, listen);
    const receipt = await completing;
    assert.equal(receipt.disposition, "recorded");
    assert.ok(receipt.attempts > 1 && ledger.stats.retries > 0);
    assert.equal((await ledger.begin(KEYS)).alreadyRecorded, true);
  });
}

test("an entry over the message limit is found before it is sent, and counted", async () => {
  await using ledger = new Ledger("unix:///nobody/is/here", silent);
  const turn = await ledger.begin(KEYS);
  const large = "x".repeat(33 * 1024 * 1024);
  const receipt = await turn.complete({ reply: large, trigger: "" });
  assert.deepEqual([receipt.failure?.reason, receipt.attempts], ["TOO_LARGE", 1]);
  assert.equal(await turn.userMessage({ phase: "execute", task: large }), `## Task\n\n${large}`);
  assert.equal(ledger.stats.tooLarge, 2);
});

test("close ends what is under way and what waits for its next try, and later calls fail at once", async () => {
  await using folder = await Folder.make();
  await using locked = await Folder.make();
  await using _hung = await HungSidecar.start(folder);
  await using _refusing = await refusing(locked, 900);
  const hung = new Ledger(folder.target, silent);
  const waiting = new Ledger(locked.target, silent);
  const calls = [hung.begin(KEYS).then((turn) => turn.readFailure), waiting.settle(KEYS).then((said) => said.failure)];
  await sleep(100);
  const began = performance.now();
  await Promise.all([hung.close(), waiting.close()]);
  assert.deepEqual(
    (await Promise.all(calls)).map((failure) => failure?.reason),
    ["CLOSED", "CLOSED"],
  );
  assert.ok(performance.now() - began < 500);
  assert.equal((await hung.begin(KEYS)).readFailure?.reason, "CLOSED");
  await hung.close();
});

test("the sidecar's own time is waited for, and an error is an answer that makes rounds patient again", async () => {
  await using folder = await Folder.make();
  await using _ = await refusing(folder, 100);
  const channel = new Channel(folder.target, () => new Metadata());
  const asker = new Asker(channel, { ...DEFAULT_DEADLINES, userMessageMs: 400 }, new Counters());
  const call = settleCall("a", "c", "w");
  asker.patience.unanswered(asker.clock());
  const { answer, attempts } = await asker.persist(call, 350, asTheContractAllows, undefined);
  channel.close();
  assert.ok(answer instanceof Failure && answer.reason === "STORE_UNAVAILABLE" && answer.retryAfterMs === 100);
  assert.ok(attempts > 1 && attempts < 5, `${attempts} tries in 350 ms, each 100 to 150 ms after the one before`);
  assert.equal(asker.patience.milliseconds(asker.clock()), 400);
});

test("a connection that a foreign answer has broken is given up, and the next call finds the sidecar", async () => {
  await using folder = await Folder.make();
  await using _ = await refusing(folder, 1, 1_000_000);
  await using ledger = new Ledger(folder.target, { ...silent, deadlines: { settleMs: 2_200 } });
  const first = await ledger.settle(KEYS);
  assert.equal(first.failure?.reason, "DEADLINE_EXCEEDED");
  const before = ledger.stats.retries;
  await assert.rejects(ledger.settle({ ...KEYS, signal: AbortSignal.timeout(500) }), { name: "TimeoutError" });
  assert.ok(ledger.stats.retries > before + 1, "the next call was answered, and asked again");
});

test("nothing keeps the process alive after close, whatever the sidecar does, and without close once all is answered", async () => {
  await using folder = await Folder.make();
  await using away = await Folder.make();
  await using hung = await Folder.make();
  await using _sidecar = await Sidecar.start(folder);
  await using _hung = await HungSidecar.start(hung);
  const program = fileURLToPath(new URL("leaving.js", import.meta.url));
  for (const target of [folder.target, away.target, hung.target]) {
    for (const manner of ["close", "leave"]) {
      const { stdout } = await promisify(execFile)(process.execPath, [program, target, manner], { timeout: 10_000 });
      assert.equal(stdout, "over\n", `${target} ${manner}`);
    }
  }
});
