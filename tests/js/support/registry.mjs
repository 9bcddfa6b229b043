// Our packages, and a registry on this machine that only has a few tarballs.
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { root } from "./helper.mjs";

const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** Packs all packages of this build into the folder `out`; returns the tarballs' paths. */
export async function packAll(out) {
  await promisify(execFile)(process.execPath, [join(root, "packaging", "npm", "pack.mjs"), "--out", out]);
  return readdirSync(out).filter((name) => name.endsWith(".tgz")).map((name) => join(out, name));
}

/** Serves the tarballs until the test `t` is over; returns the registry's URL. */
export async function serveTarballs(t, paths) {
  const entries = paths.map((path) => ({ path, manifest: manifestOf(path) }));
  const packages = new Map(entries.map((entry) => [entry.manifest.name, entry]));
  const server = createServer((request, response) => {
    const base = `http://${request.headers.host}`;
    const path = decodeURIComponent(request.url.split("?")[0].slice(1));
    const tarball = paths.find((each) => path === `-/${basename(each)}`);
    if (tarball !== undefined) return response.end(readFileSync(tarball));
    const found = packages.get(path);
    if (found === undefined) return response.writeHead(404).end("{}");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(packument(found, base)));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

function manifestOf(path) {
  return JSON.parse(execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" }));
}

function packument({ path, manifest }, base) {
  const bytes = readFileSync(path);
  const dist = {
    tarball: `${base}/-/${basename(path)}`,
    shasum: createHash("sha1").update(bytes).digest("hex"),
    integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}`,
  };
  const { name, version } = manifest;
  // Some package managers refuse a package that was published a moment ago.
  const time = { created: LONG_AGO, modified: LONG_AGO, [version]: LONG_AGO };
  return { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } }, time };
}
