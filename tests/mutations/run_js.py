"""
What run.py does for the helper, for the npm package: takes each check out of js-shim/src, one at a time, and looks that
the test that guards it goes red.

    run_js.py [WORD...]      only the mutations whose rule contains one of the words
    run_js.py --check        looks that the code still has what is to be taken out; builds nothing

Works in a copy (build/mutations-js) with the installed packages of the checkout, so `sh packaging/setup.sh --tests` and
a build of js-shim come first. The tests of the table play the helper themselves; no native build is needed. Each is run
once before anything is taken out: it must be green then, and be there at all. It takes some ten minutes.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

from table import call, check_places, chosen, print_table, try_mutation

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
COPY = os.path.join(ROOT, "build", "mutations-js")
SHIM = os.path.join(COPY, "js-shim")
TESTS = os.path.join(COPY, "tests", "js")
HERE_JS = os.path.join(SHIM, "dist", "esm", "here.js")
LIMIT_S = 60

BODY = "body.ts"
CALL = "call.ts"
CLIENT = "client.ts"
CONNECTION = "connection.ts"
CORE = "core.ts"
ENVIRONMENT = "environment.ts"
EVENTS = "events.ts"
ANSWER = "fallback-answer.ts"
FALLBACK = "fallback.ts"
FETCH = "fetch.ts"
FRAMING = "framing.ts"
GATE = "gate.ts"
GENERATE = "generate.ts"
GUARD = "guard.ts"
HELPER = "helper.ts"
LOCATE = "locate.ts"
OPTIONS = "check-options.ts"
PARTIAL = "partial.ts"
PROCESS = "process.ts"
RATE_LIMIT = "ratelimit.ts"
RELOCATE = "relocate.ts"
DOWNLOAD = "download.ts"
PULL = "pull.ts"
HUB = "hub.ts"
DEFAULT = "default-model.ts"
MODEL_FILES = "model-files.ts"
REPLY = "reply.ts"
RESPONSES = "responses.ts"
RESTART = "restart.ts"
RPC = "rpc.ts"
START = "start.ts"
STREAM = "stream.ts"
VALIDATE = "validate.ts"
WATCH = "watch.ts"
WIRE = "wire-check.ts"

# (the rule, file of js-shim/src, what is there, what is put there instead, the file of tests/js that must go red, and
# which of its tests)
MUTATIONS = [
    # crashes
    ("J1: the calls of a dead helper are rejected", RPC,
     "for (const call of waiting) call.reject(error);",
     "void waiting;",
     "lifecycle", "^J1:"),
    ("J1: a stream that was cut off is ended", RESPONSES,
     "if (partial.open) partial.fail(error).forEach(onEvent);",
     "",
     "lifecycle", "^J1:"),
    ("J1: the text so far is in the error", RESPONSES,
     "return partial.response === undefined ? error",
     "return error.detail !== \"\" ? error",
     "lifecycle", "^J1:"),
    ("J1: so it is for chat", "chunks.ts",
     "error.withPartial({ completion });",
     "error;",
     "lifecycle", "^a chat completion"),
    ("J1: a dead helper is not used again", HELPER,
     "if (this.#live === connection) this.#live = null;", "", "lifecycle", "^J1:"),
    ("J1: what was read is not sent again", CONNECTION, "|| this.#rpc.hasRead(id);", ";", "hung", "was read is not sent"),
    ("J1: a helper that crashes may have read it", CONNECTION, "this.#process.crashed ||", "", "lifecycle", "^J2, J17"),
    ("what nobody read is sent to the next helper", HELPER, "!call.wasUnread", "true", "hung", "read nothing"),
    ("... once", HELPER, "const RESENDS_MAX = 1;", "const RESENDS_MAX = 3;", "hung", "two helpers die"),
    ("J1: a death is seen though its pipes are held open", PROCESS,
     "this.#endSoon(signal === null ?",
     "void (signal === null ?",
     "lifecycle", "^J1:"),
    ("J2: a crash loop is bounded", RESTART,
     "this.#count < this.#policy.maxCrashes",
     "true",
     "lifecycle", "^J2"),
    ("J2: crashes are counted", RESTART, "healthy ? 1 : this.#count + 1;", "1;", "lifecycle", "^J2"),
    ("J2: what can't be started is not tried again", HELPER,
     "else this.#refusal = error;",
     "",
     "lifecycle", "^J2: what can't"),
    ("J2: unless the host asks for it", GATE, "this.#helper.reset();", "", "lifecycle", "^J2"),
    ("J17: after crashes each request gets a helper", RESTART,
     "this.#count >= this.#policy.perRequestAfter &&",
     "false &&",
     "hung", "^after crashes"),
    ("J17: two at once at most", HELPER, "const CHILDREN_MAX = 2;", "const CHILDREN_MAX = 8;", "hung", "two at once"),
    ("J17: one serves all again after an hour", RESTART, "persistentAfterMs: 3_600_000", "persistentAfterMs: 3_600_001",
     "hung", "^after crashes"),
    ("J17: a cancel goes to the helper that makes the response", HELPER,
     "if (maker !== undefined) return call.sendOn(maker.connection);",
     "",
     "hung", "^spawnPerRequest: a cancel by id"),
    ("... one that gets no other call any more, too", HELPER,
     "return this.#send(call, connection);\n  }\n\n  /** The helper that serves all",
     "return call.sendOn(connection);\n  }\n\n  /** The helper that serves all",
     "hung", "^a cancel by id"),
    # helpers that hang
    ("a helper that has let a limit pass is asked before it gets a call", HELPER,
     "return !live.isSuspect || (await live.takesCalls()) ? live : this.#connect();", "return live;",
     "hung", "^a helper stopped after it said"),
    ("a helper without a sign of life is given up", CONNECTION,
     "if (isQuiet && this.#pingedAt !== null && now - this.#pingedAt >= patienceMs) {",
     "if (false) {",
     "hung", "mid-stream"),
    ("a call ends a moment after its limit", CALL, "LIMITS.grace_ms + 150", "LIMITS.grace_ms + 1500",
     "hung", "^a helper that hangs, mute:"),
    ("a helper that does not keep a limit gets no further request", CALL,
     "sent.connection.giveUpOn(sent.id, hangs, this.#vouchedFor === at);",
     "sent.connection.cancel(sent.id);",
     "hung", "^a helper that hangs, mute:"),
    ("it is ended when it has no other call", CONNECTION,
     "if (this.#calls.size === 0) this.fail(hangs);\n    else setTimeout", "if (this.#calls.size > 0) setTimeout",
     "hung", "^a helper that hangs, mute:"),
    ("but not before", CONNECTION, "if (hangs === null || [...this.#calls.values()].includes(true)) return;",
     "if (hangs === null) return;\n    this.fail(hangs);",
     "hung", "^a deadline that passes"),
    ("calls without a limit do not keep it", CONNECTION, "this.#calls.set(sent.id, !isEndless);",
     "this.#calls.set(sent.id, true);",
     "hung", "^a call that has no limit"),
    ("a limit is counted from what was heard last", CALL, "this.#progress.heardAt = this.#watch.now;", "",
     "hung", "^a deadline that passes"),
    ("the gate's question is given up with the request that waits for it", GUARD, "gate?.giveUp();", "",
     "hung", "^a helper that is mute before"),
    ("a pause of the host does not count", WATCH, "if (late >= STOOD_STILL_MS) this.#stood += late;", "",
     "time-limits", "^time in which"),
    ("an idle helper ends", HELPER, "this.#idle = setTimeout(() => this.#park(), idleTimeoutMs);",
     "this.#idle = setTimeout(() => {}, idleTimeoutMs);", "hung", "^an idle helper"),
    ("... unless it holds responses", HELPER,
     "if (this.#holdsResponses && this.#options.storesInMemory()) return;",
     "",
     "hung", "^an idle helper"),
    # starts
    ("J3: a silent helper has a limit", CONNECTION,
     "}, patienceMs);",
     "}, 20 * patienceMs);",
     "lifecycle", "^J3"),
    ("J3: it is 5 s", CORE, "options.handshakeTimeoutMs ?? 5000", "options.handshakeTimeoutMs ?? 50_000",
     "restart", "^J3"),
    ("J3: a silent helper is killed", CONNECTION,
     "    this.#process.kill();\n    return this.#failure;",
     "    return this.#failure;",
     "lifecycle", "^J3"),
    ("J4: another version is refused", CONNECTION,
     'if (pong["protocol_version"] === PROTOCOL_VERSION) return;',
     "return;",
     "lifecycle", "^J4"),
    ("J4: its version is named", CONNECTION,
     'speaks protocol version ${String(pong["protocol_version"])}; `',
     'speaks another version; `',
     "lifecycle", "^J4"),
    ("J4: it is started once more", HELPER, '|| !again ||', '|| true ||', "gate", "another version"),
    ("J5: a start that fails later is heard", PROCESS,
     "this.#end(spawnError(error, this.#options));",
     "",
     "lifecycle", "^J5"),
    ("J5: a missing working directory is told from a missing program", PROCESS,
     "if (cwd !== undefined && !isDirectory(cwd)) {",
     "if (false) {",
     "lifecycle", "^J5"),
    ("J5: a directory is told from a file that may not be run", PROCESS,
     'folder: "is a directory",',
     "",
     "lifecycle", "^J5"),
    ("J6: what greets is no helper", CONNECTION,
     'if (code === "PROTOCOL_ERROR") return',
     "if (false) return",
     "lifecycle", "^J6"),
    ("J6: what ends at once is no helper", CONNECTION,
     'if (code === "HELPER_EXITED") return',
     "if (false) return",
     "lifecycle", "^J5"),
    ("J7: what spawn throws is an FmError", PROCESS,
     "throw spawnError(error, options);",
     "throw error;",
     "lifecycle", "^J7"),
    ("J5: no signal goes to the host's process group", PROCESS, "if (this.#child.pid !== undefined) this.#child", "this.#child",
     "lifecycle", "^J5: no signal"),
    ("J8: no shell reads the path", PROCESS,
     "windowsHide: true,",
     "windowsHide: true, shell: true,",
     "lifecycle", "^J8"),
    ("J8: not from within an Electron archive", LOCATE,
     "return beside !== path && existsSync(beside) ? beside : path;",
     "return path;",
     "locate", "Electron"),
    ("a build folder of another project is not looked into", LOCATE,
     'if (existsSync(join(repository, "CMakeLists.txt")) && existsSync(join(repository, "protocol", "PROTOCOL.md"))) {',
     "if (true) {",
     "locate", "in order"),
    ("a permission that was lost is repaired", RELOCATE, "if (writable) await chmod(path, 0o755);", "",
     "relocate", "^a permission"),
    ("... of a helper that PATH leads to, too", LOCATE, "(inFolders(given, folders.split(delimiter)) ?? given)", "given",
     "locate", "in PATH"),
    ("J9: not in a folder that nobody may write to", RELOCATE, "if (writable) await", "await", "relocate", "read-only"),
    ("a copy is what was copied", RELOCATE, "if (await isCopyOf(original, to, sizeOf)) return to;",
     "if (await exists(to)) return to;", "relocate", "broken"),
    ("a copy appears whole", RELOCATE,
     "await rename(fresh, to).catch(async",
     "await cp(fresh, to, { recursive: true }).catch(async",
     "relocate", "^a copy is there as a whole"),
    ("only copies that nobody uses are removed", RELOCATE, " && Date.now() - it.mtimeMs > UNUSED_MS;", ";", "relocate", "unused"),
    ("no link is removed as a copy", RELOCATE, "it !== null && it.isDirectory()", "it !== null", "relocate", "unused"),
    ("a use of a copy is noted", RELOCATE, "  await noteUse(to);\n", "", "relocate", "again counts"),
    # what comes from the helper
    ("J10: stray text ends the helper and its calls", CONNECTION,
     "      this.#brokeProtocol = true;\n      this.fail(toFmError(error));",
     "      this.#brokeProtocol = true;",
     "lifecycle", "^J10"),
    ("J10: a message is JSON-RPC 2.0", RPC,
     'if (!isObject(message) || message["jsonrpc"] !== "2.0") {',
     "if (!isObject(message)) {",
     "rpc", "another version"),
    ("J10: a result has ok", RPC,
     'call.reject(new FmError("PROTOCOL_ERROR", "The helper broke the protocol: a result without ok."));',
     "call.resolve({});",
     "rpc", "rejected by"),
    ("J10: an error without an id breaks the connection", RPC,
     'if (message["id"] === null) throw fatalError(failure);',
     "",
     "rpc", "without an id"),
    ("J10: out of memory is the helper's end", RPC,
     'return failure?.["code"] === RPC_ERRORS.INTERNAL_ERROR',
     "return false",
     "lifecycle", "out of memory"),
    ("J10: a header in pieces is one header", FRAMING,
     "this.#headerLength = length;\n    return chunk.length;",
     "return chunk.length;",
     "framing", "^the parser takes"),
    ("J10: a second Content-Length is fatal", FRAMING, "if (length !== null) throw", "if (false) throw",
     "framing", "^the parser refuses"),
    ("J10: no sign, blank or leading zero in a length", FRAMING,
     "if (!/^(0|[1-9][0-9]*)$/.test(value)) throw",
     "if (!(Number(value) >= 0)) throw",
     "framing", "^the parser refuses"),
    ("J10: a body has at most 10,000,000 bytes", FRAMING,
     "if (length > MAX_BODY_BYTES) throw",
     "if (length > MAX_BODY_BYTES + 1) throw",
     "framing", "^the parser refuses"),
    ("J10: a header has at most 8,192 bytes", FRAMING,
     "MAX_HEADER_BYTES = LIMITS.header_bytes", "MAX_HEADER_BYTES = 16384",
     "framing", "^the parser refuses"),
    ("J10: a header has at most 32 lines", FRAMING,
     "MAX_HEADER_LINES = LIMITS.header_lines", "MAX_HEADER_LINES = 33",
     "framing", "^the parser refuses"),
    ("J10: no NUL and no byte above 0x7F in a header", FRAMING,
     "if (byte === 0 || byte >= 0x80) throw",
     "if (false) throw",
     "framing", "^the parser refuses"),
    ("J10: a bare LF or CR is fatal", FRAMING, "if ((byte === LF) !== afterCr) throw", "if (false) throw",
     "framing", "^the parser refuses"),
    ("J10: no empty body", FRAMING, "if (length === 0) throw", "if (false) throw",
     "framing", "^the parser refuses"),
    ("J10: no charset but UTF-8", FRAMING, "if (!/^utf-?8$/i.test(charset)) throw", "if (false) throw",
     "framing", "^the parser refuses"),
    ("J10: stray text is refused at its first byte", FRAMING,
     "if (length === 1 && !isNameByte(byte)) throw",
     "if (false) throw",
     "framing", "^the parser refuses"),
    ("J11: a body in pieces is one body", FRAMING,
     "this.#body.set(chunk.subarray(start, end), this.#bodyLength - this.#missing);",
     "this.#body.set(chunk.subarray(start, end), 0);",
     "lifecycle", "^J11"),
    ("J11: what is not UTF-8 is refused", RPC, "{ fatal: true, ignoreBOM: true }", "{ ignoreBOM: true }",
     "rpc", "character"),
    ("J11: a log's character in pieces is one character", PROCESS,
     "decoder.write(chunk)",
     "stderr(chunk.toString())",
     "lifecycle", "^onLog"),
    ("an onLog that throws ends nothing", EVENTS, "    warn(what, error);\n", "    throw error;\n",
     "lifecycle", "an onLog that throws"),
    ("an onLog that rejects is no unhandled rejection", EVENTS,
     "Promise.resolve(call(value)).catch((error: unknown) => warn(what, error));",
     "call(value);", "lifecycle", "an onLog that rejects"),
    ("it is one warning", PROCESS, "      this.#warned = true;\n", "", "lifecycle", "an onLog that throws"),
    # what goes to the helper
    ("J12: what is not read is capped", PROCESS,
     "if (stdin.writableLength + bytes.length > MAX_UNWRITTEN_BYTES) {",
     "if (false) {",
     "lifecycle", "^J12"),
    ("J12: the cap is 64 MiB", PROCESS, "= 64 * 1024 * 1024", "= 72 * 1024 * 1024", "lifecycle", "^J12"),
    ("a request has at most 10,000,000 bytes", FRAMING, "if (body.length > MAX_BODY_BYTES) {", "if (false) {",
     "framing", "^the encoder"),
    ("half a surrogate pair is not sent", FRAMING, "encoder.encode(replaceLoneSurrogates(json))",
     "encoder.encode(json)",
     "framing", "^half a surrogate"),
    ("at most 65,536 values", WIRE, "this.#values > MAX_VALUES ?", "false ?", "framing", "^the encoder"),
    ("at most 64 levels", WIRE, "if (this.#levels.length === MAX_DEPTH) return", "if (false) return",
     "framing", "^the encoder"),
    ("no NUL in a key", WIRE, 'this.#key(level).includes("\\0") ?', "false ?", "framing", "^the encoder"),
    ("J13: an abort is sent", CALL,
     "this.#sent.connection.cancel(this.#sent.id);", "{}", "lifecycle", "^J13"),
    ("J13: once", CALL,
     "if (this.#over || this.#cancelled) return;", "if (this.#over) return;", "lifecycle", "^J13"),
    ("J13: not for a call that is over", RPC,
     "if (this.#failure !== null || !this.#pending.has(id)) return;",
     "if (this.#failure !== null) return;",
     "rpc", "^a cancel"),
    ("J13: an abort before the call is sent keeps it from being sent", HELPER,
     "if (call.isOver) return null;\n    if (call.method",
     "if (call.method",
     "lifecycle", "^J13"),
    ("J13: a signal that is aborted already starts no stream", STREAM,
     ": refused(failure.reason);",
     ": start((event) => this.#push(event));",
     "stream", "^a signal"),
    ("a signal is one", STREAM, 'if (typeof aborted !== "boolean" || addEventListener === undefined ||',
     "if (aborted && addEventListener === undefined &&", "stream", "^options of a call"),
    ("a call's options: none is dropped", STREAM, "if (unknown !== undefined) {", "if (unknown === null) {", "stream",
     "^options of a call"),
    ("a check that promises ends no host", GENERATE, "if (value instanceof Promise) value.catch(() => {});", "",
     "generate", "^a check that promises"),
    ("J13: nor a call", STREAM, "if (signal.aborted) return Promise.reject(signal.reason);", "",
     "stream", "^a signal"),
    ("J13: break sends a cancel", STREAM, "    this.abort();\n    return {", "    return {", "lifecycle", "^J13"),
    ("J13: an abort before the first token rejects", REPLY, "if (wasOpen === null) reject(signal?.reason);",
     "if (wasOpen === null) void 0;",
     "fetch", "^an abort"),
    ("J13: one after it breaks the body", REPLY, "else wasOpen.error(signal?.reason);", "else wasOpen.close();",
     "fetch", "^an abort"),
    ("J13: what comes after an abort is dropped", STREAM, "if (this.#over) return;\n    this.#events.push(event);",
     "this.#events.push(event);",
     "stream", "^a signal"),
    ("J13: what waits is dropped, too", STREAM, "    this.#events = [];\n    this.#next = 0;\n    this.#end(failure);",
     "    this.#end(failure);",
     "stream", "^a signal"),
    ("J13: no listener is left: streams", STREAM,
     'this.#signal?.removeEventListener("abort", this.#onAbort);',
     "",
     "stream", "listener"),
    ("J13: no listener is left: calls", STREAM, "operation.result.finally(over).then",
     "void over; operation.result.then",
     "stream", "listener"),
    ("J13: an abort ends a body that never does", BODY,
     "reader.releaseLock();\n    discard(",
     "if (0) discard(",
     "fetch", "^a body that is never whole"),
    ("J13: a body without end is cut", BODY, "if (length > MAX_BODY_BYTES) {", "if (false) {",
     "fetch", "^a body without end"),
    ("a refused stream of bytes is not cancelled", BODY, "own && !isOfBytes(content) ?", "own || isOfBytes(content) === null ?",
     "fetch", "^what is left of a refused body"),
    ("nor is what Node made a stream of", BODY, "own && !isOfBytes(content) ?", "!isOfBytes(content) || !own ?",
     "fetch", "unhandled rejection"),
    ("the caller's own stream is cancelled", BODY,
     "own && !isOfBytes(content) ?", "own && !isOfBytes(content) && Date.now() < 0 ?",
     "fetch", "unhandled rejection"),
    ("no more of a refused body is read than of another", BODY, "length <= MAX_BODY_BYTES && performance", "performance",
     "fetch", "^what is left of a refused body"),
    ("a form stays one, whatever the headers say", BODY, "body instanceof FormData ? null : type", "type",
     "fetch", "says it is JSON"),
    ("a form is refused", BODY, r"json|text\/plain)", r"json|text\/plain|.*)",
     "fetch", "form"),
    ("a strict query has no unknown names", FETCH,
     'if (call.strict) throw badQuery("unknown_parameter", name, "Unknown");', "",
     "fetch", "unknown query"),
    ("what a query has too much is reported", FETCH, "addIgnored(call.ignored, name);", "",
     "fetch", "^ignored and reported"),
    ("what the helper ignored is in the header", FETCH, "[...call.ignored, ...ignoredOf(answer)]", "call.ignored",
     "fetch", "^what the helper ignored"),
    ("a header has a path's plain characters alone", "ignored.ts", 'encode(cut(path))', 'cut(path)',
     "fetch", "^ignored and reported"),
    ("the header has at most 64 names", "ignored.ts", "names.length === MAX_NAMES ||", "",
     "fetch", "^the header of what was ignored"),
    ("and at most 4,096 bytes", "ignored.ts", " || room < 0", "",
     "fetch", "^the header of what was ignored"),
    ("and no more than 255 characters of a name", "ignored.ts", "encode(cut(path))", "encode(path)",
     "fetch", "^the header of what was ignored"),
    ("a stream that was joined in the middle ends with an error", PARTIAL,
     "if (this.#response === null) return [told];",
     "if (this.#response === null) return [];",
     "fetch", "^a stream that was joined in the middle"),
    ("J13: no listener is left: fetch", REPLY, 'signal?.removeEventListener("abort", onAbort);', "",
     "fetch", "listener|abort"),
    ("J14: a dead stdin is no uncaught error", PROCESS,
     'child.stdin?.on("error", () => this.#endSoon("closed its input"));',
     "",
     "lifecycle", "^J14"),
    ("J14: and fails the calls", PROCESS,
     'child.stdin?.on("error", () => this.#endSoon("closed its input"));',
     'child.stdin?.on("error", () => {});',
     "lifecycle", "^J14"),
    ("J14: a helper without stdin is killed", PROCESS,
     "this.kill();\n    this.#child.stdin?.destroy();",
     "this.#child.stdin?.destroy();",
     "lifecycle", "^J14"),
    # Node's event loop
    ("J15: an idle child lets Node end", PROCESS, "this.#child[verb]();", "this.#child.ref();",
     "lifecycle", "^J15: an idle"),
    ("J15: so do its pipes", PROCESS,
     "(stream as { ref?(): void; unref?(): void } | null)?.[verb]?.();",
     "void stream;",
     "lifecycle", "^J15: an idle"),
    ("J15: a busy one does not", PROCESS,
     'const verb = busy ? "ref" : "unref";',
     'const verb = busy ? "unref" : "unref";',
     "lifecycle", "^J15: a busy"),
    ("J15: calls under way are counted", HELPER, "this.#setBusy(-1);", "", "lifecycle", "^J15: an idle"),
    ("J16: nor does it keep a thread", PROCESS, "this.#child[verb]();", "this.#child.ref();", "lifecycle", "^J16"),
    # pauses
    ("J18: there is a pause before a restart", HELPER, "if (ms === 0) return;", "return;", "lifecycle", "^close: before"),
    ("J18: pauses have a maximum", RESTART,
     "Math.min(maxDelayMs, firstDelayMs * 2 ** (crashes - 2))",
     "(maxDelayMs - maxDelayMs + firstDelayMs * 2 ** (crashes - 2))",
     "restart", "^J18"),
    ("J18: pauses double", RESTART, "firstDelayMs * 2 ** (crashes - 2)", "firstDelayMs * (crashes - 1)",
     "restart", "^J18"),
    ("J18: chance varies them", RESTART, " * (0.5 + Math.random() / 2)", "", "restart", "^J18"),
    ("J18: health starts the count anew", RESTART, "healthy ? 1 : this.#count + 1", "this.#count + 1",
     "restart", "^J18"),
    ("J18: after 60 s", RESTART, "healthyAfterMs: 60_000", "healthyAfterMs: 59_999", "restart", "^J18"),
    # the gate
    ("a check asks once, however many want to know", GATE, "this.#asking ??= ", "this.#asking = ", "gate", "^many requests"),
    ("compatible is remembered", GATE, 'if (this.#known.state === "ready") return this.#known.verdict;', "",
     "gate", "^compatible is"),
    ("a check waits for an engine that is still being asked", GATE, "verdict.checking === true &&", "false &&",
     "order", "check waits"),
    ("... until a request fails for want of the model", GUARD, 'if (error.code === "UNAVAILABLE") gate.doubt();', "",
     "gate", "^compatible is"),
    ("a missing model is remembered for five minutes", GATE, "const WAIT_MS = 5 * 60_000;", "const WAIT_MS = 6 * 60_000;",
     "gate", "five minutes"),
    ("another model than the default one goes on", GUARD, "|| DEFAULT_MODELS.has(model);", "|| true;", "gate", "names a model"),
    ("requests pass the gate", GUARD, "if (this.#guard.checks) await this.#passGate();", "", "gate", "MODEL_NOT_READY"),
    ("other calls are refused without a helper, too", GUARD,
     "const error = this.#options.checks ? this.#options.gate.lacksHelper() : null;",
     "const error = null;",
     "gate", "without a start: the option"),
    ("the engine of the environment counts", CORE,
     "const value = options[name] ?? variableOf(options, variable);",
     "const value = options[name] ?? variable.slice(0, 0);",
     "gate", "without a start: the host's"),
    # rate limits
    ("a success clears the count", RATE_LIMIT, "  noteSuccess(): void {\n    this.#inARow = 0;", "  noteSuccess(): void {",
     "safe", "policy fallback"),
    ("only the policy retry waits", RATE_LIMIT, 'if (rateLimitPolicy !== "retry") return null;', "", "safe", "^policy"),
    ("the helper's own limit is none of the model's", GUARD, "|| error.openai.code === FULL", "", "safe", "own limit"),
    ("an SDK is not told to wait for long", REPLY, "String(ms <= LONGEST_RETRY_MS)", '"true"', "safe", "never waits"),
    # safe calls, generate, options
    ("the host's own mistakes do not go to the fallback", FALLBACK, "INVALID_REQUEST: false,", "INVALID_REQUEST: true,",
     "fallback", "^INVALID_REQUEST"),
    ("a stream that has begun is not begun anew", FALLBACK, "if (this.#begun ||", "if (", "fallback", "that has begun"),
    ("what is our own does not go to another client", FALLBACK, "!OURS.has(name)", "true", "safe", "any OpenAI client"),
    ("a fallback that throws is told", FALLBACK,
     "The fallback failed too: ${failed.detail}", "", "safe", "a fallback that fails"),
    ("a request that was aborted asks no fallback", FALLBACK,
     "    this.#cancelled.abort();\n", "", "fallback", "^an aborted request"),
    ("close ends a request whose fallback is asked", FALLBACK,
     'closed.addEventListener("abort", close, { once: true });', "", "fallback", "^close ends"),
    ("an answer says who gave it", ANSWER, 'source: "fallback" }', "}", "fallback", "^plain calls"),
    ("a vector is in the form that was asked for", ANSWER, 'if (format !== "base64" ||', "if (format !== undefined ||",
     "fallback", "^vectors are"),
    ("generate checks the schema", GENERATE, "if (wrong !== null) return { reason: wrong };", "void wrong;",
     "generate", "^one retry"),
    ("generate tells the reason", GENERATE, "${last.reason} ", "", "generate", "^one retry"),
    ("generate refuses what it does not take", GENERATE, "  checkNames(params);\n", "", "generate", "^generate with"),
    ("... in the request of it, too", GENERATE, "  checkRequest(params.request);\n", "", "generate", "^generate with"),
    ("... and in its options", GENERATE, "const signal = signalOf(options);", "const { signal } = options ?? {};", "generate",
     "^options of generate"),
    ("what a fallback has begun may ask when it is over", FALLBACK, "each.of === this.#options && !each.over",
     "each.of === this.#options", "fallback", "^a fallback that asks its own"),
    ("a conversation does not go on after a fallback", FALLBACK, "before.startsWith(UNSTORED)", 'before === ""', "fallback",
     "^a conversation does not"),
    ("many requests may fall back at once", FALLBACK, "    setMaxListeners(0, closed);", "   ", "fallback", "^many requests"),
    ("many requests may have one signal", STREAM, "if (signal instanceof EventTarget) setMaxListeners(0, signal);", "",
     "fallback", "^many requests"),
    ("a fallback's stream has to end", "fallback-answer.ts", "if (!ended) throw", "if (false) throw", "fallback",
     "^a fallback's stream that breaks"),
    ("no limit becomes null", "framing.ts", 'if (json?.includes("null")) {', "if (false) {", "framing", "NaN"),
    ("a fallback without a choice gave nothing", "fallback-answer.ts", '(list.length > 0 || name === "output")', "true",
     "fallback", "^a fallback that fails too"),
    ("of a short name few letters may differ", OPTIONS, "Math.min(most, name.length * 0.4)", "most",
     "options", "with abc"),
    ("a setting of elsewhere is told", OPTIONS, "elsewhere(name) ?? ", "", "options", "with threads"),
    ("an option's path is told as a whole", START, "(isPath(value, kind) ? whole(value) : value)", "value",
     "options", "^paths are told"),
    ("a stream that is refused rejects who waits for it", STREAM, "this.#open(failure);", "this.#open(null);",
     "stream", "is refused rejects"),
    ("who does not wait for a stream has no unhandled rejection", STREAM, "  promise.catch(() => {});\n", "",
     "stream", "is refused rejects"),
    ("what is no schema is no schema", VALIDATE, "if (wrong !== null) throw", "if (wrong?.error === \"\") throw",
     "generate", "^a schema that has one"),
    ("an unknown option is refused", OPTIONS, "if (!Object.hasOwn(KINDS, name)) {", "if (false) {",
     "options", "modle"),
    ("on macOS Apple's model is asked first", START, 'process.platform === "darwin" && !isNamed', "false",
     "options", "^on macOS"),
    ("... unless something else is named", START, '"darwin" && !isNamed', '"darwin"', "options", "^on macOS"),
    # secrets
    ("J19: the environment is an allow-list", ENVIRONMENT, "(ENVIRONMENT.has(upper) ||", "(true ||", "locate", "^J19"),
    ("J19: whatever the case", ENVIRONMENT, "const upper = name.toUpperCase();", "const upper = name;", "locate", "^J19"),
    ("J19: and it is what the helper gets", CORE,
     "await spawnOptions(options, helperEnvironment(process.env, options.env));",
     "await spawnOptions(options, { ...process.env, ...options.env } as Record<string, string>);",
     "lifecycle", "^J19"),
    # each call once
    ("J20: an answer settles its call once", RPC,
     "    this.#pending.delete(id);\n    this.#noteRead(id);\n", "    this.#noteRead(id);\n", "rpc", "^notifications"),
    ("J20: the first reason counts", RPC, "if (this.#failure !== null) return;\n    this.#failure = error;",
     "this.#failure = error;",
     "rpc", "^a failure"),
    ("J20: a call after the end is refused", RPC, "if (this.#failure !== null) throw this.#failure;", "",
     "rpc", "^a failure"),
    ("J20: a result that nobody wants is no unhandled rejection", STREAM, "this.#final.catch(() => {});", "",
     "lifecycle", "^J13: break"),
    ("J20: nor is a goodbye that is not answered", CONNECTION,
     'this.#rpc.call("process.shutdown", {}).result.catch(() => {});',
     'this.#rpc.call("process.shutdown", {});',
     "lifecycle", "^close: a helper that will not go"),
    # order
    ("J21: one terminal event", PARTIAL, "if (this.#over) return false;", "", "stream", "^a stream without an end"),
    ("J21: never none", RESPONSES, "if (partial.open) throw fail(", "if (false) throw fail(",
     "stream", "^a stream without an end"),
    ("J21: the events come before the error", STREAM,
     "if (event !== undefined) return {",
     "if (event !== undefined && this.#failure === null) return {",
     "stream", "^a failure"),
    ("J21: events reach their own call", RPC,
     'const call = this.#pending.get(params["id"] as number);',
     "const call = [...this.#pending.values()].at(-1);",
     "lifecycle", "^J21"),
    # close
    ("close: nothing is started after it", HELPER,
     "if (this.#isClosed) throw closedError();\n    this.#options",
     "this.#options",
     "lifecycle", "^close"),
    ("close: a helper that will not go is killed", HELPER,
     "const end = setTimeout(() => connection.kill(), shutdownTimeoutMs);",
     "const end = setTimeout(() => {}, shutdownTimeoutMs);",
     "lifecycle", "^close: a helper that will not go"),
    ("close: it waits for those that were given up, too", HELPER,
     "const leaving = [...this.#processes];",
     "const leaving = this.#live === null ? [] : [this.#live];",
     "lifecycle", "^close waits"),
    ("close: a helper that waits for its turn to start is not started", HELPER,
     ", { signal: this.#closing.signal });",
     ", {});",
     "lifecycle", "^close: before"),
    # models
    ("a download goes on where it was", DOWNLOAD, "{ range: `bytes=${this.#received}-`,", "{ range: `bytes=0-`,",
     "pull", "^what was there"),
    ("a connection that falls silent is left", DOWNLOAD,
     "this.#stalled = true;\n      this.#abort();", "this.#stalled = true;",
     "pull", "falls silent"),
    ("a wrong hash is told", DOWNLOAD, "const differs = wanted !== null && sha256 !== wanted;", "const differs = false;",
     "pull", "a wrong hash"),
    ("a page is no model", DOWNLOAD, "=== MAGIC ? null", "!== MAGIC ? null", "pull", "in place of a model"),
    ("no server without https", DOWNLOAD,
     'if (url.protocol === "https:" || (url.protocol === "http:" && local)) return;', "return;",
     "pull", "without https"),
    ("a cut-off file is not taken for whole", DOWNLOAD, "if (total !== null && this.#received < total) {", "if (false) {",
     "pull", "^a rest that ends"),
    ("a full disk is told beforehand", DOWNLOAD,
     "if (wanted > bavail * bsize) throw", "if (false) throw", "pull", "full disk, told"),
    ("tries come to an end", DOWNLOAD, "failures >= TRIES", "failures >= 100", "pull", "^five tries"),
    ("one download of a file at a time", PULL, "throw inUse(owner, path);\n    await removeLock", "await removeLock",
     "pull", "^two at once"),
    ("a lock that is not signed yet counts", PULL, "< UNSIGNED_MS ?", "< 0 ?", "pull", "^a lock without a number"),
    ("a user's own file stays", PULL, "if (isOurs || source.sha256From === OPTION) return null;", "return null;",
     "pull", "another origin|user's own"),
    ("the hub's hash counts", HUB, "sha256: hashOf(lfs?.oid)", "sha256: null", "pull", "^the hub's hash"),
    ("a model that is named by its quantisation", HUB, "quantOf(path) === wanted", "true", "pull", "^what people type"),
    ("no model is chosen of several on the hub", HUB, "only !== undefined && candidates.length === 1", "only !== undefined",
     "pull", "^where several files fit"),
    ("the first file of a split model comes last", HUB, "files.reverse()", "files", "pull", "^a split model"),
    ("a split model is whole, or none comes", HUB, "if (parts.length < names.length) {", "if (false) {",
     "pull", "^a split model"),
    ("a projector has its model's name", HUB, "name: `mmproj-${idOf(chosen.path)}.gguf`", "name: basename(projector.path)",
     "pull", "^a model that sees"),
    ("no later pull takes the default's place", PULL, " || (await Promise.all(others)).includes(true)", "",
     "pull", "^the first model that is pulled"),
    ("a model that embeds is no default", PULL, "!(await answers(path)) || ", "",
     "pull", "^the first model that is pulled"),
    ("a model that can't be used is no default", MODEL_FILES, "(await readRecord(path))?.usable !== false", "true",
     "model-files", "^without a choice"),
    ("a chosen model that is gone is none", DEFAULT, "(await isFile(path)) ? path : null", "true ? path : null",
     "pull", "^a chosen model"),
    ("projectors are no models", MODEL_FILES, "!/mmproj/i.test(name)", "true", "model-files", "LM Studio"),
    ("each model once", MODEL_FILES, "!seen.has(keyOf(model)) && seen.add(keyOf(model))", "true",
     "model-files", "Hugging Face"),
    ("a pause is short again after bytes have come", DOWNLOAD, "received() > before ? 1 : failures + 1",
     "failures + 1", "pull", "^pauses"),
    ("a lock of this number, which this process does not hold", PULL, "&& !held.has(path)) return null;",
     "&& !held.has(path)) return owner;", "pull", "^a lock of a process that had"),
    ("a model that embeds is no default of a folder", MODEL_FILES, "if (!(await readFacts(path)).embeds) return path;",
     "return path;", "model-files", "^without a choice"),
]


def prepare():
    shutil.rmtree(COPY, ignore_errors=True)
    ignore = shutil.ignore_patterns("node_modules", "dist", ".dist-*")
    for folder in ("js-shim", os.path.join("tests", "js")):
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(COPY, folder), ignore=ignore)
        os.symlink(os.path.join(ROOT, folder, "node_modules"), os.path.join(COPY, folder, "node_modules"))
    built = call("node", "scripts/build.mjs", cwd=SHIM)
    if built.returncode:
        sys.exit(built.stdout)
    shutil.copy(HERE_JS, COPY)  # it is not made by the compiler


def build():
    """Compiles the one format that the tests import; a check taken out may leave things unused."""
    tsc = os.path.join("node_modules", "typescript", "bin", "tsc")
    unused = ("--noUnusedLocals", "false", "--noUnusedParameters", "false", "--allowUnreachableCode", "true")
    state = ("--incremental", "--tsBuildInfoFile", os.path.join(COPY, "tsbuildinfo"))
    done = call("node", tsc, "-p", "tsconfig.json", *unused, *state, cwd=SHIM)
    shutil.copy(os.path.join(COPY, "here.js"), HERE_JS)
    return done.stdout if done.returncode else ""


def run_tests(test, pattern):
    """True when all are green; how many were run. Nothing that they started is left."""
    command = ("node", "--test", "--test-reporter=tap", "--test-name-pattern", pattern, f"{test}.test.mjs")
    child = subprocess.Popen(
        command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        output, _ = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        output = ""
    finally:
        kill_group(child)
    passed = re.search(r"^# pass (\d+)$", output, re.MULTILINE)
    return child.returncode == 0, int(passed.group(1)) if passed else 0


def kill_group(child):
    """The helpers of a mutation that keeps them from being ended, too."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def check_green(mutations):
    for test, pattern in dict.fromkeys(mutation[4:] for mutation in mutations):
        green, count = run_tests(test, pattern)
        if not green or count == 0:
            sys.exit(f"{test}, {pattern}: " + ("no such test" if green else "red before anything was taken out"))


def rows(mutations):
    for rule, file, old, new, test, pattern in mutations:
        def is_red(test=test, pattern=pattern):
            return not run_tests(test, pattern)[0]

        outcome = try_mutation(os.path.join(SHIM, "src", file), old, new, build, is_red)
        yield rule, file, f"{test}, {pattern}".replace("|", "\\|"), outcome


def main():
    if sys.argv[1:] == ["--check"]:
        return check_places(os.path.join(ROOT, "js-shim", "src"), MUTATIONS)
    mutations = chosen(MUTATIONS, sys.argv[1:])
    prepare()
    check_green(mutations)
    return print_table(rows(mutations))


if __name__ == "__main__":
    sys.exit(main())
