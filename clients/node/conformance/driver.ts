/**
 * The TypeScript client's driver for the language-neutral cases: a command a line on standard input, an answer a line on
 * standard output. The protocol stands in tests/conformance/README.md.
 */

import { createInterface } from "node:readline";
import {
  type Deadlines,
  type Ending,
  InvalidSavedTurn,
  Ledger,
  LedgerError,
  type Phase,
  type Scope,
  type Turn,
  type TurnKeys,
  workKey,
} from "@turnledger/client";
import { ScriptedRewriter } from "./rewriter.js";
import { type Command, camel, failure, given, neutral, plain, receipt, text, texts, turn, wide } from "./values.js";

type Handler = (command: Command) => unknown;

let ledger: Ledger | null = null;
let rewriter: ScriptedRewriter | null = null;
const turns = new Map<string, Turn>();

const handlers: { readonly [name: string]: Handler } = {
  async open(command) {
    await close();
    const answers = command["rewriter"] as readonly Command[] | undefined;
    rewriter = answers?.length ? new ScriptedRewriter(answers) : null;
    const deadlines = Object.entries(command["deadlines"] ?? {}).map(([name, s]) => [
      `${camel(name)}Ms`,
      Number(s) * 1_000,
    ]);
    ledger = new Ledger(
      String(command["target"]),
      given({
        deadlines: Object.fromEntries(deadlines) as Partial<Deadlines>,
        rewriter: rewriter?.rewrite,
        rewritesAtOnce: plain(command["rewrites_at_once"]),
        logger: { warn: (line: string) => console.error(line) },
      }),
    );
    return {};
  },
  async close() {
    await close();
    return {};
  },
  async begin(command) {
    const hardLimitBytes = wide(command["hard_limit_bytes"]);
    const waitForNotes = command["wait_for_notes"] as boolean | undefined;
    return began(command, await opened().begin({ ...keys(command), ...given({ hardLimitBytes, waitForNotes }) }));
  },
  resume(command) {
    return began(command, opened().resume(String(command["saved"])));
  },
  called(command) {
    const error = command["error"] ?? null;
    turnOf(command).called(text(command["name"]), text(command["arguments"]), {
      ...given({ kind: command["kind"] as string | undefined }),
      error: error === null ? null : text(error),
      sensitive: texts(command["sensitive"]),
    });
    return {};
  },
  async user_message(command) {
    return {
      text: await turnOf(command).userMessage({
        phase: command["phase"] as Phase,
        task: text(command["task"]),
        context: text(command["context"]),
        priorWork: text(command["prior_work"]),
        ...given({
          iteration: plain(command["iteration"]),
          systemBytes: wide(command["system_bytes"]),
          toolBytes: wide(command["tool_bytes"]),
        }),
      }),
    };
  },
  async complete(command) {
    const moment = command["completed_at"];
    const ending = {
      trigger: text(command["trigger"]),
      ...given({
        reply: optional(command["reply"]),
        unsent: optional(command["unsent"]),
        intent: optional(command["intent"]),
        decision: optional(command["decision"]),
        completedWork: optional(command["completed_work"]),
        blockedOn: optional(command["blocked_on"]),
        completedAt: moment === undefined || moment === null ? undefined : date(String(moment)),
        rewrite: command["rewrite"] as boolean | undefined,
      }),
    };
    return receipt(await turnOf(command).complete(ending as unknown as Ending));
  },
  async suspended(command) {
    return receipt(await turnOf(command).suspended());
  },
  async crashed(command) {
    return receipt(await turnOf(command).crashed());
  },
  async settle(command) {
    const settlement = await opened().settle(keys(command));
    return { ...settlement, failure: failure(settlement.failure) };
  },
  async forget(command) {
    return opened().forget(scope(command));
  },
  async drain(command) {
    return { drained: await opened().drain(Number(command["seconds"]) * 1_000) };
  },
  rewrites() {
    return { calls: rewriter?.calls ?? [], mostAtOnce: rewriter?.mostAtOnce ?? 0 };
  },
  stats() {
    return opened().stats;
  },
  work_key(command) {
    return { workKey: workKey(texts(command["trigger_ids"])) };
  },
};

async function answer(command: Command): Promise<object> {
  const name = String(command["do"]);
  // A saved turn alone is answered as it is, however long.
  if (name === "save") return { ok: { saved: turnOf(command).save() } };
  const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined;
  if (handler === undefined) return { refused: "unknown_command" };
  try {
    return { ok: neutral(await handler(command)) };
  } catch (error) {
    if (error instanceof LedgerError) return { failed: neutral(failure(error.failure)) };
    if (error instanceof InvalidSavedTurn) return { refused: "saved_turn" };
    if (error instanceof TypeError || error instanceof RangeError) return { refused: "argument" };
    throw error;
  }
}

function opened(): Ledger {
  if (ledger === null) throw new Error("no ledger is open");
  return ledger;
}

async function close(): Promise<void> {
  turns.clear();
  await ledger?.close();
  ledger = null;
}

function began(command: Command, begun: Turn): unknown {
  turns.set(String(command["as"] ?? "turn"), begun);
  return turn(begun);
}

function turnOf(command: Command): Turn {
  const found = turns.get(String(command["turn"] ?? "turn"));
  if (found === undefined) throw new Error("no turn has that name");
  return found;
}

function keys(of: Command): TurnKeys {
  return {
    agentHandle: text(of["agent_handle"]),
    conversationKey: text(of["conversation_key"]),
    turnId: text(of["turn_id"]),
    workKey: text(of["work_key"]),
  };
}

function scope(command: Command): Scope {
  const found = ["turn", "conversation", "seat"].find((name) => `${name}_scope` in command);
  return { scope: found, ...keys((command[`${found}_scope`] ?? {}) as Command) } as Scope;
}

/** A TEXT; undefined where it is absent or null. */
function optional(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : text(value);
}

/** An RFC 3339 time. A Date cannot lack a time zone, so a text that does is refused here, as one that is no time. */
function date(moment: string): Date {
  return new Date(/(Z|[+-]\d\d:\d\d)$/i.test(moment) ? moment : Number.NaN);
}

// One line after another: an answer is written before the next command is looked at.
for await (const line of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
  const command = JSON.parse(line) as Command;
  let said: object;
  try {
    said = await answer(command);
  } catch (error) {
    said = { broken: String(error) };
  }
  process.stdout.write(`${JSON.stringify({ id: command["id"], ...said })}\n`);
}
await close();
