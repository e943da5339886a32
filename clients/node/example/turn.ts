/**
 * An engine's side of the ledger, played once: a turn that fails to send its answer, and the next one of the same
 * conversation, which is told so.
 *
 * It starts a sidecar of its own, with the Python of the variable TURNLEDGER_PYTHON or of the checkout's .venv. With a target
 * as its argument it uses the one that runs there: `npm run example -- unix:///run/turnledger/turnledger.sock`.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Ledger, workKey } from "@turnledger/client";

/** Your agent: it answers a prompt, and calls tools on the way. */
async function agent(prompt: string, call: (name: string, args: string) => Promise<void>): Promise<string> {
  await call("get_order", '{"order_id": 20931}');
  return prompt.includes("You did NOT reply") ? "Sorry for the wait: it ships on Friday." : "It ships on Friday.";
}

/** One turn: what a trigger started, from its history to its receipt. `deliver` hands the answer to whoever asked. */
async function turn(ledger: Ledger, triggerId: string, trigger: string, deliver: (text: string) => Promise<void>) {
  const run = await ledger.begin({
    agentHandle: "support",
    conversationKey: "jira:POC-7",
    turnId: triggerId.padStart(8, "0"),
    workKey: workKey([triggerId]),
  });
  if (run.alreadyRecorded) return; // the trigger came a second time: it was answered
  const prompt = await run.userMessage({ phase: "execute", task: trigger });
  console.log(`${prompt}\n`);
  const text = await agent(prompt, async (name, args) => run.called(name, args, { kind: "read" }));
  const delivered = await deliver(text).then(
    () => true,
    () => false,
  );
  // Before the trigger is acknowledged. A failure is in the receipt, and costs the entry alone.
  const outcome = delivered ? { reply: text } : { unsent: text };
  const receipt = await run.complete({ ...outcome, trigger, decision: delivered ? "done" : "failed" });
  console.log(`[${receipt.disposition ?? receipt.failure}]\n`);
}

async function play(target: string): Promise<void> {
  await using ledger = new Ledger(target, { deadlines: { beginMs: 5_000 } });
  await turn(ledger, "1", "Where is my order 20931?", async () => {
    throw new Error("the mail server is down");
  });
  await turn(ledger, "2", "Hello? Anybody there?", async (text) => console.log(`> ${text}\n`));
  await turn(ledger, "2", "Hello? Anybody there?", async () => {
    throw new Error("a redelivered trigger was answered twice");
  });
  const { recorded, readFailures, writeFailures } = ledger.stats;
  console.log(`recorded ${recorded}, failed reads ${readFailures}, failed writes ${writeFailures}`);
}

/** Play with a sidecar that lives as long as the play. */
async function playWithOwnSidecar(): Promise<void> {
  const root = fileURLToPath(new URL("../../../../", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "tl-example-"));
  const target = `unix://${folder}/s`;
  const python = process.env["TURNLEDGER_PYTHON"] ?? join(root, ".venv/bin/python");
  const sidecar = spawn(python, ["-m", "sidecar", "serve", "--listen", target, "--store", `${folder}/store.db`], {
    cwd: root,
    env: { ...process.env, PYTHONPATH: `${root}:${join(root, "clients/python")}` },
    stdio: "ignore",
  });
  const failed = new Promise<never>((_, reject) => {
    sidecar.once("error", reject);
    sidecar.once("exit", (status) => reject(new Error(`the sidecar ended with ${status}`)));
  });
  try {
    await Promise.race([sidecarUp(target), failed]);
    await play(target);
  } finally {
    sidecar.kill("SIGTERM");
    if (sidecar.exitCode === null && sidecar.pid) await new Promise((resolve) => sidecar.once("exit", resolve));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** An engine never waits for its sidecar; a play does, so that it tells its story. */
async function sidecarUp(target: string): Promise<void> {
  await using ledger = new Ledger(target, { logger: {} });
  const nobody = { agentHandle: "nobody", conversationKey: "nowhere", turnId: "00000000", workKey: "" };
  while ((await ledger.begin(nobody)).readFailure !== null) await sleep(100);
}

const [target] = process.argv.slice(2);
await (target === undefined ? playWithOwnSidecar() : play(target));
