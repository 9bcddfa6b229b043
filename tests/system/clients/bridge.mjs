// An HTTP server in front of fm-system, for clients that only speak HTTP; only for tests. It passes on the messages unchanged,
// apart from their ids (all requests of 2026-07-28 share one fm-system) and what `rename` changes. It handles the parts of
// HTTP: sessions, status codes, streams.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

const META = "io.modelcontextprotocol/";
const STATUS = { "-32601": 404 };

// One fm-system. `ask` passes each message about a request to `told`. The answer is the last one: `told` is not called after it.
class Server {
  constructor(program, args) {
    this.child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.child.stdin.on("error", () => {}); // the process has ended; its "exit" event settles the waiting requests
    this.open = new Map();
    this.last = 0;
    createInterface({ input: this.child.stdout }).on("line", (line) => this.take(JSON.parse(line)));
    this.child.on("exit", () => {
      for (const id of this.open.keys()) this.take({ id, error: { code: -32603, message: "fm-system has ended" } });
    });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  ask(message, told) {
    const id = ++this.last;
    this.open.set(id, { id: message.id, token: message.params?._meta?.progressToken, told });
    this.send({ ...message, id });
    return () => {
      if (this.open.delete(id)) this.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
    };
  }

  take(message) {
    const id = message.id ?? this.whoWants(message);
    const request = this.open.get(id);
    if (request === undefined) return;
    if (message.id !== undefined) this.open.delete(id);
    // A subscription has the same name as its request.
    const told = JSON.parse(JSON.stringify(message), (key, value) => (key === `${META}subscriptionId` ? request.id : value));
    request.told(message.id === undefined ? told : { ...told, id: request.id });
  }

  // The request to which a notification belongs.
  whoWants({ params }) {
    const subscription = params?._meta?.[`${META}subscriptionId`];
    if (subscription !== undefined) return subscription;
    return [...this.open].find(([, { token }]) => token !== undefined && token === params?.progressToken)?.[0];
  }

  end() {
    this.child.stdin.end();
  }
}

/**
 * Returns {url, close}. `rename` has two functions: `request` gets a request's message, and returns it, perhaps changed;
 * `answer` gets the original request and its answer.
 */
export async function bridge(program, args, rename = { request: (it) => it, answer: (_, it) => it }) {
  const shared = new Server(program, args);
  const sessions = new Map();

  // The server for a message: the server of its session, or the server for all requests that name their version themselves.
  function find(request, message, response) {
    const name = request.headers["mcp-session-id"];
    if (name !== undefined) return sessions.get(name);
    if (message.method !== "initialize" || message.params?._meta?.[`${META}protocolVersion`]) return shared;
    const session = randomUUID();
    sessions.set(session, new Server(program, args));
    response.setHeader("Mcp-Session-Id", session);
    return sessions.get(session);
  }

  async function post(request, response) {
    const message = JSON.parse(await text(request));
    const server = find(request, message, response);
    if (server === undefined) return response.writeHead(404).end();
    if (message.id === undefined) {
      server.send(message);
      return response.writeHead(202).end();
    }
    const leave = server.ask(rename.request(message), (told) => {
      const last = told.id !== undefined;
      const line = JSON.stringify(last ? rename.answer(message, told) : told);
      if (last && !response.headersSent) {
        response.writeHead(told.error ? STATUS[told.error.code] ?? 400 : 200, { "Content-Type": "application/json" }).end(line);
        return;
      }
      if (!response.headersSent) response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(`data: ${line}\n\n`);
      if (last) response.end();
    });
    response.on("close", leave);
  }

  function end(request, response) {
    const name = request.headers["mcp-session-id"];
    sessions.get(name)?.end();
    response.writeHead(sessions.delete(name) ? 200 : 404).end();
  }

  const http = createServer((request, response) => {
    if (request.method === "POST") return post(request, response).catch((error) => response.destroy(error));
    if (request.method === "DELETE") return end(request, response);
    return response.writeHead(405).end();
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${http.address().port}/mcp`,
    close() {
      http.close();
      http.closeAllConnections();
      for (const server of [shared, ...sessions.values()]) server.end();
    },
  };
}
