// `fm-proxy run`: one question, or a conversation on a terminal.
import { createInterface } from "node:readline/promises";
import { text } from "node:stream/consumers";
import { createClient, type Client, type ResponseCreateParams } from "../index.js";
import { adviceFor, modelOption } from "./models.js";
import { errorText, fail, say, sayText, Usage } from "./output.js";
import type { Arguments } from "./parse.js";

/** Exit status of a program that was ended by SIGINT, as shells tell it. */
const INTERRUPTED = 130;

export async function ask({ words, options }: Arguments): Promise<number> {
  const settings = requestOf(options);
  const client = createClient({ model: await modelOption(options["model"] as string | undefined) });
  try {
    const report = await client.compatibility.check();
    if (!report.compatible) {
      fail(report.detail ?? report.reason_code ?? "");
      const advice = await adviceFor(report);
      if (advice !== undefined) fail(advice);
      return 1;
    }
    const [prompt] = words;
    if (prompt === undefined && process.stdin.isTTY === true) return await converse(client, settings);
    const input = prompt ?? (await text(process.stdin));
    if (input.trim() === "") throw new Usage("the prompt is empty");
    return (await answer(client, { ...settings, input })).status;
  } finally {
    await client.close();
  }
}

function requestOf(options: Arguments["options"]): ResponseCreateParams {
  const settings: Record<string, unknown> = {};
  if (options["instructions"] !== undefined) settings["instructions"] = options["instructions"];
  for (const name of ["max-output-tokens", "temperature"]) {
    const value = options[name];
    if (value === undefined) continue;
    if (value === "" || !Number.isFinite(Number(value))) throw new Usage(`--${name} must be a number, not '${value}'`);
    settings[name.replaceAll("-", "_")] = Number(value);
  }
  return settings as ResponseCreateParams;
}

/** Prints an answer while it comes. Ctrl-C ends it. */
async function answer(client: Client, body: ResponseCreateParams): Promise<{ status: number; id?: string }> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once("SIGINT", interrupt);
  let id: string | undefined;
  let last = "";
  try {
    for await (const event of client.responses.stream(body, { signal: stop.signal })) {
      if (event.type === "response.output_text.delta") sayText((last = event.delta));
      if (event.type === "response.completed" || event.type === "response.incomplete") id = event.response.id;
    }
    return { status: 0, ...(id === undefined ? {} : { id }) };
  } catch (error) {
    if (stop.signal.aborted) return { status: INTERRUPTED };
    if (last !== "") say("");
    last = "";
    fail(errorText(error));
    return { status: 1 };
  } finally {
    if (last !== "" && !last.endsWith("\n")) say("");
    process.off("SIGINT", interrupt);
  }
}

/** Questions and answers until the input ends. */
async function converse(client: Client, settings: ResponseCreateParams): Promise<number> {
  fail("a conversation: Ctrl-C ends an answer, Ctrl-D ends it all");
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: "> " });
  lines.on("SIGINT", () => lines.close());
  lines.prompt();
  let previous: string | undefined;
  for await (const line of lines) {
    if (line.trim() !== "") {
      const body = { ...settings, input: line, ...(previous === undefined ? {} : { previous_response_id: previous }) };
      previous = (await answer(client, body)).id ?? previous;
    }
    lines.prompt();
  }
  return 0;
}
