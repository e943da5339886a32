/** What a failed call carries in `grpc-status-details-bin`: google.rpc's ErrorInfo, RetryInfo and BadRequest. */

import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { type ServiceError, status } from "@grpc/grpc-js";
import { DEADLINE_EXCEEDED, Failure, UNREACHABLE, type Violation } from "./failure.js";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from "./gen/turnledger/client/rich_status_pb.js";

// ErrorInfo of anybody else gives no reasons that this library could trust.
const DOMAIN = "turnledger";

/** The failure that a call's status, message and trailers tell; damaged details count as none. */
export function failureOf(error: ServiceError): Failure {
  let reason = "";
  let retryAfterMs: number | null = null;
  let violations: readonly Violation[] = [];
  for (const { typeUrl, value } of detailsOf(error)) {
    const name = typeUrl.slice(typeUrl.lastIndexOf(".") + 1);
    if (name === "ErrorInfo") {
      const info = read(ErrorInfoSchema, value);
      if (info?.domain === DOMAIN) reason = info.reason;
    } else if (name === "RetryInfo") {
      const delay = read(RetryInfoSchema, value)?.retryDelay;
      if (delay) retryAfterMs = Number(delay.seconds) * 1_000 + delay.nanos / 1e6;
    } else if (name === "BadRequest") {
      const found = read(BadRequestSchema, value)?.fieldViolations ?? [];
      violations = found.map(({ field, description }) => ({ field, description }));
    }
  }
  const code = status[error.code] ?? "UNKNOWN";
  return new Failure(code, reason || reasonOf(code), error.details, retryAfterMs, violations);
}

/** The reason where none was given. */
function reasonOf(code: string): string {
  if (code === "UNAVAILABLE") return UNREACHABLE;
  return code === "DEADLINE_EXCEEDED" ? DEADLINE_EXCEEDED : code;
}

function detailsOf(error: ServiceError): { typeUrl: string; value: Uint8Array }[] {
  const [raw] = error.metadata?.get("grpc-status-details-bin") ?? [];
  return Buffer.isBuffer(raw) ? (read(StatusSchema, raw)?.details ?? []) : [];
}

/** The message in the bytes; undefined where they are none. */
function read<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> | undefined {
  try {
    return fromBinary(schema, bytes);
  } catch {
    return undefined; // the runtime throws plain errors at bytes that do not parse
  }
}
