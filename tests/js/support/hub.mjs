// A stand-in for Hugging Face: the list of a repository's files, with pages of two entries, and the files.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

/**
 * Serves `files`, a map of OWNER/NAME/PATH to bytes, until the test `t` is over; meanwhile HF_ENDPOINT names this server. It
 * gives a wrong hash for the file `wrong`. The first `overloads` requests fail. If `list` is set, it replaces every answer.
 */
export async function serveHub(t, files) {
  const hub = { asked: [], files, wrong: "", overloads: 0 };
  const server = createServer((request, response) => {
    const { pathname: path, searchParams } = new URL(request.url, `http://${hub.host}`);
    hub.asked.push(path);
    if (hub.overloads-- > 0) return response.writeHead(503).end();
    if (hub.list !== undefined) return response.end(JSON.stringify(hub.list));
    const repository = /^\/api\/models\/(.+)\/tree\/[^/]+$/.exec(path)?.[1];
    const names = [...files.keys()].filter((name) => name.startsWith(`${repository}/`));
    const bytes = files.get(path.slice(1).replace(/\/resolve\/[^/]+/, ""));
    if (names.length > 0) {
      const all = [{ type: "directory", oid: "2", size: 0, path: "sub" }, ...names.map((name) => entry(hub, name, repository))];
      const next = Number(searchParams.get("cursor") ?? 0) + 2;
      const link = next < all.length ? { link: `<http://${hub.host}${path}?cursor=${next}>; rel="next"` } : {};
      response.writeHead(200, link).end(JSON.stringify(all.slice(next - 2, next)));
    } else if (bytes !== undefined) response.writeHead(200, { "content-length": bytes.length }).end(bytes);
    else response.writeHead(path.startsWith("/api/models/nobody") ? 401 : 404).end();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  hub.host = `127.0.0.1:${server.address().port}`;
  const before = process.env.HF_ENDPOINT;
  process.env.HF_ENDPOINT = `http://${hub.host}/`;
  t.after(() => {
    if (before === undefined) delete process.env.HF_ENDPOINT;
    else process.env.HF_ENDPOINT = before;
    server.closeAllConnections();
    server.close();
  });
  return hub;
}

function entry({ files, wrong }, file, repository) {
  const path = file.slice(repository.length + 1);
  const bytes = files.get(file);
  const oid = path === wrong ? "0".repeat(64) : hash(bytes);
  return { type: "file", oid: "1", path, size: bytes.length, ...(path === "README.md" ? {} : { lfs: { oid } }) };
}
