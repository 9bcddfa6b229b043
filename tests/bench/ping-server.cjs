// The comparison: the smallest server that the usual library makes, answering the same call with the same fields.
const { createMessageConnection, StreamMessageReader, StreamMessageWriter } = require("vscode-jsonrpc/node");

const connection = createMessageConnection(
  new StreamMessageReader(process.stdin),
  new StreamMessageWriter(process.stdout),
);
const started = Date.now();
connection.onRequest("health.ping", () => ({
  ok: true,
  protocol_version: 1,
  version: "0.1.0",
  pid: process.pid,
  uptime_ms: Date.now() - started,
}));
connection.listen();
