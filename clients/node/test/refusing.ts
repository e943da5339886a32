/**
 * A sidecar that is locked for ever, in a process of its own: each Settle is to be tried again in so many milliseconds. Its
 * first answer carries so many bytes more than it needs.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { ErrorInfoSchema, RetryInfoSchema, StatusSchema } from "../src/gen/turnledger/client/rich_status_pb.js";
import type { Folder } from "./sidecar.js";

/** Start one on a folder's socket. */
export async function refusing(folder: Folder, retryAfterMs: number, ballastBytes = 0): Promise<AsyncDisposable> {
  const args = [fileURLToPath(import.meta.url), folder.target, `${retryAfterMs}`, `${ballastBytes}`];
  const started = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(started.stdout, "data");
  return {
    [Symbol.asyncDispose]: async () => {
      started.kill("SIGKILL");
      await once(started, "exit");
    },
  };
}

function serve(target: string, retryAfterMs: number, ballastBytes: number): void {
  const details = create(StatusSchema, {
    details: [
      anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { domain: "turnledger", reason: "STORE_UNAVAILABLE" })),
      anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: { nanos: retryAfterMs * 1e6 } })),
    ],
  });
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, details)));
  const laden = metadata.clone();
  laden.set("ballast", "x".repeat(ballastBytes));
  let answers = 0;
  const settle = (_: unknown, answer: (error: object) => void) => {
    answers += 1;
    answer({ code: status.UNAVAILABLE, details: "", metadata: answers === 1 ? laden : metadata });
  };
  const same = (bytes: Buffer) => bytes;
  const method = { path: "/turnledger.v1.Record/Settle", requestStream: false, responseStream: false } as const;
  const codec = {
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  const server = new Server();
  server.addService({ settle: { ...method, ...codec } }, { settle });
  server.bindAsync(target, ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    console.log("ready");
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target = "", retryAfterMs, ballastBytes] = process.argv.slice(2);
  serve(target, Number(retryAfterMs), Number(ballastBytes));
}
