// Generates src/gen from ../../proto and ./proto. With --check it writes nothing, and fails where what is committed is not
// what the proto files say. It needs `buf`: the one in the checkout's .venv, or the one that the variable BUF names.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const home = dirname(dirname(fileURLToPath(import.meta.url)));
const committed = join(home, "src/gen");
const buf = process.env.BUF ?? join(home, "../../.venv/bin/buf");

/** Every file below `folder`, as path to bytes. */
function files(folder) {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    found.map((entry) => {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      return [path.slice(folder.length + 1), readFileSync(path, "utf8")];
    }),
  );
}

const scratch = mkdtempSync(join(tmpdir(), "turnledger-gen-"));
try {
  const template = {
    version: "v2",
    plugins: [
      {
        local: join(home, "node_modules/.bin/protoc-gen-es"),
        out: ".",
        opt: ["target=ts", "import_extension=js"],
      },
    ],
  };
  for (const input of [join(home, "../../proto"), join(home, "proto")]) {
    execFileSync(buf, ["generate", input, "--template", JSON.stringify(template), "--output", scratch], {
      stdio: "inherit",
      env: { BUF_CACHE_DIR: join(scratch, ".cache"), ...process.env },
    });
  }
  rmSync(join(scratch, ".cache"), { recursive: true, force: true });
  if (process.argv.includes("--check")) {
    const [fresh, old] = [files(scratch), files(committed)];
    const stale = [...new Set([...fresh.keys(), ...old.keys()])].filter((path) => fresh.get(path) !== old.get(path));
    if (stale.length > 0) {
      console.error(`Not what the proto files say: ${stale.join(", ")}. Run "npm run gen" and commit what it writes.`);
      process.exitCode = 1;
    }
  } else {
    rmSync(committed, { recursive: true, force: true });
    cpSync(scratch, committed, { recursive: true });
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
