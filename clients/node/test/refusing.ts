import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { ErrorInfoSchema, RetryInfoSchema, StatusSchema } from "../src/gen/turnledger/client/rich_status_pb.js";
import type { Folder } from "./sidecar.js";

/** A server on a folder's socket that is locked for ever: each Settle is to be tried again in so many milliseconds. */
export async function refusing(folder: Folder, retryAfterMs: number): Promise<AsyncDisposable> {
  const details = create(StatusSchema, {
    details: [
      anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { domain: "turnledger", reason: "STORE_UNAVAILABLE" })),
      anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: { nanos: retryAfterMs * 1e6 } })),
    ],
  });
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, details)));
  const server = new Server();
  const same = (bytes: Buffer) => bytes;
  server.addService(
    {
      settle: {
        path: "/turnledger.v1.Record/Settle",
        requestStream: false,
        responseStream: false,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    {
      settle: (_: unknown, answer: (error: object) => void) =>
        answer({ code: status.UNAVAILABLE, details: "", metadata }),
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(folder.target, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve()));
  });
  return { [Symbol.asyncDispose]: async () => server.forceShutdown() };
}
