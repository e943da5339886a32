/** The pure parts, and the vectors that every language agrees on. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compose, Failure, InvalidSavedTurn, workKey } from "@turnledger/client";
import { promptSize } from "../src/compose.js";
import { FULL_WAIT_EVERY_MS, Patience, STRAINED_MESSAGE_MS } from "../src/deadlines.js";
import { parseExact, stringifyExact } from "../src/json-text.js";
import { Places } from "../src/places.js";
import { asTheContractAllows, waitMs, whileItAnswers } from "../src/retry.js";
import { dump, load, type SavedTurn } from "../src/saved.js";
import { repaired } from "../src/text.js";
import { digestOf } from "../src/wire.js";
import { withheld } from "../src/withhold.js";

function vectors<Case>(name: string): readonly Case[] {
  const path = new URL(`../../../../tests/conformance/${name}`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8")).cases;
}

test("the work key of every language's vectors", () => {
  const cases = vectors<{ name: string; trigger_ids: string[]; work_key: string }>("work_key.json");
  assert.ok(cases.length > 5);
  for (const { name, trigger_ids, work_key } of cases) assert.equal(workKey(trigger_ids), work_key, name);
  assert.equal(workKey(" a"), workKey(["a", "a"]));
  assert.equal(workKey(["\ud800"]), workKey(["\ufffd"]));
});

test("the message of every language's vectors, byte for byte", () => {
  interface Case {
    readonly name: string;
    readonly phase: string;
    readonly history: string;
    readonly context: string;
    readonly task: string;
    readonly prior_work: string;
    readonly sha256: string;
    readonly user_bytes: number;
    readonly approximate_tokens: number;
  }
  const cases = vectors<Case>("compose.json");
  assert.ok(cases.length > 50);
  for (const { name, phase, history, context, task, prior_work, ...expected } of cases) {
    const parts = { context, history: phase === "execute" ? history : "", task, priorWork: prior_work };
    const message = compose(parts);
    const { userBytes, approximateTokens } = promptSize(message, parts);
    assert.deepEqual(
      [digestOf(message), userBytes, approximateTokens],
      [expected.sha256, expected.user_bytes, expected.approximate_tokens],
      name,
    );
  }
});

test("a lone surrogate is replaced and counted, and a pair is let be", () => {
  assert.deepEqual(repaired("a🙂b"), ["a🙂b", 0]);
  assert.deepEqual(repaired("\ude42🙂\ud83d\ud83d\ude42\ud83d"), ["\ufffd🙂\ufffd🙂\ufffd", 3]);
});

test("sensitive values are withheld and all else stays digit for digit", () => {
  const text = '{ "a" : 1.50e+3, "b\\u0041" : {"a": [1, "}", {}]} , "c":12345678901234567890 }';
  assert.equal(withheld(text, []), text);
  assert.equal(withheld(text, ["x"]), text);
  assert.equal(withheld(text, ["a"]), text.replace("1.50e+3", '"(withheld)"'));
  assert.equal(withheld(text, ["bA"]), text.replace('{"a": [1, "}", {}]}', '"(withheld)"'));
  assert.equal(withheld(text, ["c", "a"]), text.replace("1.50e+3", '"(withheld)"').replace(/\d{20}/, '"(withheld)"'));
  assert.equal(withheld('{"a":"\\"}"}', ["a"]), '{"a":"(withheld)"}');
  assert.equal(withheld('{"__proto__":1,"a":2}', ["a"]), '{"__proto__":1,"a":"(withheld)"}');
  assert.equal(withheld("{}", ["a"]), "{}");
});

test("what is no JSON object, or repeats a key at any depth, is withheld as a whole", () => {
  for (const text of [
    "",
    "5",
    "[1]",
    '"a"',
    "null",
    "{",
    '{"a":NaN}',
    '{"a":1,}',
    '\ufeff{"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"b":[{"a":1,"a":2}]}',
  ]) {
    assert.equal(withheld(text, ["x"]), "(withheld)", text);
  }
  const deep = `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  assert.equal(withheld(deep, ["a"]), '{"a":"(withheld)"}');
});

const SAVED: SavedTurn = {
  keys: { agentHandle: "a\u2028", conversationKey: "c", turnId: "0a1b2c3d", workKey: "w" },
  history: {
    state: "present",
    text: '## Earlier "1234567890123456789" 🙂',
    digest: digestOf('## Earlier "1234567890123456789" 🙂'),
    bytes: 2n ** 64n - 1n,
    shown: 1,
    condensed: 2,
    leftOut: 3,
    noLongerKept: 2n ** 53n + 1n,
    unreadable: 5,
  },
  readFailure: null,
  alreadyRecorded: true,
  iterations: new Map([["execute", 3]]),
  calls: [{ name: "n", arguments: '{"k":1}', kind: "read", failed: true, error: "e", sensitive: ["k"] }],
};

test("a saved turn comes back as it was, integers past 2^53 exactly, sensitive values withheld", () => {
  const [call] = SAVED.calls;
  assert.deepEqual(load(dump(SAVED)), { ...SAVED, calls: [{ ...call, arguments: '{"k":"(withheld)"}' }] });
  const failure = new Failure("UNAVAILABLE", "STORE_IO", "é", 200, [{ field: "f", description: "d" }]);
  const unread = load(dump({ ...SAVED, history: null, readFailure: failure }));
  assert.deepEqual([unread.history, unread.readFailure, unread.readFailure?.message], [null, failure, "é"]);
});

test("a saved turn that was damaged, or is of a later version, is refused as such", () => {
  const text = dump(SAVED);
  const changes: readonly [RegExp | string, string][] = [
    ['"turnledger_saved_turn":1', '"turnledger_saved_turn":2'],
    ['"turnledger_saved_turn":1', '"turnledger_saved_turn":"1"'],
    ["Earlier", "Later"],
    ['"shown":1', '"shown":1.5'],
    ['"shown":1', '"shown":12345678901234567890'],
    ['"already_recorded":true', '"already_recorded":1'],
    ['"execute":3', '"plan":3'],
    ['"agent_handle":"a', '"agent_handle":"\\ud800'],
    ['"kind":"read"', '"kind":"peek"'],
    ['"bytes":18446744073709551615', '"bytes":"18446744073709551615"'],
    [/,"calls".*/, "}"],
    [/}$/, ""],
  ];
  for (const [from, to] of changes) {
    const changed = text.replace(from, to);
    assert.notEqual(changed, text);
    assert.throws(() => load(changed), InvalidSavedTurn, to);
  }
  for (const none of ["", "null", "[]", "5"]) assert.throws(() => load(none), InvalidSavedTurn);
  assert.deepEqual(load(text.replace('"keys":', '"later":[1],"keys":')).keys, SAVED.keys);
});

test("exact JSON keeps large integers and finds none inside texts", () => {
  assert.deepEqual(parseExact('{"a":1234567890123456,"b":"1234567890123456","c":0.1234567890123456e1}'), {
    a: ["1234567890123456"],
    b: "1234567890123456",
    c: 1.234567890123456,
  });
  assert.equal(
    stringifyExact({ a: 2n ** 64n, b: ["\u007fé🙂"] }),
    '{"a":18446744073709551616,"b":["\\u007f\\u00e9\\ud83d\\ude42"]}',
  );
});

test("waits double up to a second, and the sidecar's own time is a floor", () => {
  const failure = new Failure("UNAVAILABLE", "STORE_IO");
  assert.deepEqual(
    [1, 2, 3, 9, 999].map((attempt) => waitMs(failure, attempt, 1)),
    [50, 100, 200, 1000, 1000],
  );
  assert.deepEqual(
    [0, 1].map((random) => waitMs(failure, 1, random)),
    [25, 50],
  );
  const told = new Failure("UNAVAILABLE", "STORE_IO", "", 200);
  assert.deepEqual(
    [0, 1].map((random) => waitMs(told, 5, random)),
    [200, 300],
  );
});

test("what may be asked for again is what the contract's table says", () => {
  const again: readonly [string, string, boolean][] = [
    ["UNAVAILABLE", "STORE_UNAVAILABLE", true],
    ["DEADLINE_EXCEEDED", "DEADLINE", true],
    ["RESOURCE_EXHAUSTED", "OVERLOADED", true],
    ["RESOURCE_EXHAUSTED", "STORE_FULL", false],
    ["RESOURCE_EXHAUSTED", "TOO_LARGE", false],
    ["INVALID_ARGUMENT", "INVALID", false],
    ["DATA_LOSS", "STORE_CORRUPT", false],
    ["INTERNAL", "INTERNAL", false],
    ["CANCELLED", "CLOSED", false],
  ];
  for (const [code, reason, may] of again) assert.equal(asTheContractAllows(new Failure(code, reason)), may, reason);
  assert.equal(whileItAnswers(new Failure("UNAVAILABLE", "UNREACHABLE")), false);
});

test("rounds are short while the sidecar is known not to answer, but for one full wait in thirty seconds", () => {
  const patience = new Patience(500);
  assert.equal(patience.milliseconds(0), 500);
  patience.unanswered(0);
  assert.equal(patience.milliseconds(1), STRAINED_MESSAGE_MS);
  assert.equal(patience.milliseconds(FULL_WAIT_EVERY_MS), 500);
  assert.equal(patience.milliseconds(FULL_WAIT_EVERY_MS + 1), STRAINED_MESSAGE_MS);
  patience.answered();
  assert.equal(patience.milliseconds(FULL_WAIT_EVERY_MS + 2), 500);
  assert.equal(new Patience(20).milliseconds(0), 20);
});

test("a failure's message, which anybody may have written, is in no JSON and in no line but the transport's", () => {
  const foreign = new Failure("INTERNAL", "INTERNAL", "content");
  assert.ok(!JSON.stringify(foreign).includes("content") && !`${foreign}`.includes("content"));
  assert.equal(foreign.message, "content");
  assert.equal(`${new Failure("UNAVAILABLE", "UNREACHABLE", "no such file")}`, "UNAVAILABLE UNREACHABLE: no such file");
});

test("a place that is given back goes to who waits first, and no place is there twice", async () => {
  const places = new Places(1);
  const never = new AbortController();
  const alive = setInterval(() => {}, 1_000); // who waits for a place does not keep a process
  assert.equal(await places.take(0, never.signal), true);
  assert.equal(await places.take(0, never.signal), false);
  const next = places.take(5_000, never.signal);
  places.leave();
  assert.equal(await next, true);
  const gone = places.take(5_000, never.signal);
  assert.equal(await places.take(0, never.signal), false);
  never.abort();
  assert.equal(await gone, false);
  places.leave();
  assert.equal(await places.take(0, never.signal), true);
  clearInterval(alive);
});
