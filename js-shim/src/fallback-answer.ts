// Converts the result of a fallback to the form of the helper's answers.
import { ChatChunks } from "./chat.js";
import type { Chunks } from "./chunks.js";
import { CompletionChunks } from "./completions.js";
import type { FallbackMethod } from "./fallback.js";
import { TERMINAL } from "./partial.js";
import { eventsOf } from "./replay.js";
import type { ChatCompletionChunk, CompletionChunk, JsonObject, WireResponse } from "./types.js";
import { isObject } from "./types.js";

/** The prefix of ids of responses that are made here from a plain text. These responses are not stored. */
export const UNSTORED = "resp_fallback_";

/** Completes the answers of one method. */
export interface Whole {
  /** The member of the helper's result that holds the answer. */
  readonly name: "response" | "completion" | "decision" | "embeddings";
  /** Makes the whole answer from the fallback's result. Throws an Error if the result contains no answer. */
  of(value: unknown): JsonObject;
  /** The messages of a stream that carries the whole answer. */
  messages(answer: JsonObject): Iterable<JsonObject>;
  /** Takes one event or chunk of a stream, and returns it as a message of the helper. */
  observe(each: JsonObject): JsonObject;
  /** The whole answer, put together from all events or chunks that `observe` got. */
  observed(): JsonObject;
}

/**
 * Makes the converter for one request. `model`: the model that was requested from the fallback, if it differs from the body's.
 */
export function wholeAnswer(method: FallbackMethod, body: JsonObject, model: string | undefined): Whole {
  const base = { created: Math.floor(Date.now() / 1000), model: model ?? body["model"] ?? "fallback" };
  return MAKERS[method](body, base);
}

interface Base {
  created: number;
  model: unknown;
}

const MAKERS: Readonly<Record<FallbackMethod, (body: JsonObject, base: Base) => Whole>> = {
  "responses.create": wholeResponse,
  "chat.completions.create": wholeChat,
  "completions.create": wholeCompletion,
  "decisions.create": wholeDecision,
  "embeddings.create": wholeEmbeddings,
};

/** Marks an answer as the fallback's. */
function marked(answer: JsonObject): JsonObject {
  return { ...answer, fm: { ...(isObject(answer["fm"]) ? answer["fm"] : {}), source: "fallback" } };
}

/** The text in the fallback's result: the result itself, or its `output_text`; null: neither is a text. */
function textOf(value: unknown): string | null {
  const text = isObject(value) ? value["output_text"] : value;
  return typeof text === "string" ? text : null;
}

/** The list in the fallback's result, or else a list that is made of its text. */
function listOf(value: unknown, name: string, ofText: ((text: string) => JsonObject) | null, what: string): unknown[] {
  if (value === undefined || value === null) throw new Error("it gave nothing");
  const list = isObject(value) ? value[name] : undefined;
  // A response may have no item, but an empty list of choices or vectors is no answer.
  if (Array.isArray(list) && (list.length > 0 || name === "output")) return list;
  const text = textOf(value);
  if (text === null || ofText === null) throw new Error(`it gave no ${what}, which has the member '${name}'`);
  return [ofText(text)];
}

const given = (value: unknown): JsonObject => (isObject(value) ? value : {});
const newId = (prefix: string): string => `${prefix}${crypto.randomUUID().replaceAll("-", "")}`;

function wholeResponse(body: JsonObject, { created, model }: Base): Whole {
  const message = (text: string): JsonObject => ({
    id: newId("msg_"),
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
  });
  let last: JsonObject | null = null;
  let ended = false;
  return {
    name: "response",
    of: (value) => {
      const output = listOf(value, "output", message, "Response");
      return marked({ ...responseOf(body, created, model), ...given(value), output });
    },
    messages: (answer) => [...eventsOf(answer as unknown as WireResponse)].map((event) => ({ event })),
    observe: (event) => {
      if (!isObject(event["response"])) {
        if (last === null) throw new Error("its stream begins without a Response (an event response.created)");
        return { event };
      }
      last = marked(event["response"]);
      ended = TERMINAL.has(event["type"]);
      return { event: { ...event, response: last } };
    },
    observed: () => {
      if (last === null) throw new Error("its stream had no response");
      if (!ended) throw new Error("its stream broke off");
      return last;
    },
  };
}

/** A response that does not contain the answer yet. */
function responseOf(body: JsonObject, created: number, model: unknown): JsonObject {
  const asked = (name: string, otherwise: unknown): unknown => body[name] ?? otherwise;
  return {
    id: newId(UNSTORED),
    object: "response",
    created_at: created,
    status: "completed",
    completed_at: created,
    error: null,
    incomplete_details: null,
    instructions: asked("instructions", null),
    max_output_tokens: asked("max_output_tokens", null),
    access_programs: null,
    max_tool_calls: null,
    metadata: asked("metadata", {}),
    model,
    output: [],
    parallel_tool_calls: asked("parallel_tool_calls", true),
    previous_response_id: asked("previous_response_id", null),
    prompt_cache_key: null,
    reasoning: asked("reasoning", null),
    safety_identifier: null,
    service_tier: "default",
    store: false,
    temperature: asked("temperature", 1),
    text: asked("text", { format: { type: "text" } }),
    tool_choice: asked("tool_choice", "auto"),
    tools: asked("tools", []),
    top_logprobs: 0,
    top_p: asked("top_p", 1),
    truncation: "disabled",
    usage: null,
    background: false,
    presence_penalty: 0,
    frequency_penalty: 0,
  };
}

/** For chat and legacy completions: both have choices, and chunks with choices. */
function ofChoices(value: unknown, ofText: (text: string) => JsonObject, base: JsonObject, what: string): JsonObject {
  const choices = listOf(value, "choices", ofText, what).map((choice, index) => ({ index, ...given(choice) }));
  const { output_text: _, ...rest } = given(value);
  return marked({ ...base, ...rest, choices });
}

function wholeChat(body: JsonObject, { created, model }: Base): Whole {
  const base = { id: newId("chatcmpl-"), object: "chat.completion", created, model, usage: null };
  const choice = (content: string): JsonObject => ({
    index: 0,
    message: { role: "assistant", content, refusal: null, annotations: [] },
    logprobs: null,
    finish_reason: "stop",
  });
  const chunks = new ChatChunks();
  return {
    name: "completion",
    of: (value) => ofChoices(value, choice, base, "chat completion"),
    messages: (answer) => chunksOf(answer, body, chatPieces),
    ...observing(chunks as EitherChunks),
  };
}

function wholeCompletion(body: JsonObject, { created, model }: Base): Whole {
  const base = { id: newId("cmpl-"), object: "text_completion", created, model, usage: null };
  const choice = (text: string): JsonObject => ({ index: 0, text, logprobs: null, finish_reason: "stop" });
  return {
    name: "completion",
    of: (value) => ofChoices(value, choice, base, "completion"),
    messages: (answer) => chunksOf(answer, body, (each) => [each]),
    ...observing(new CompletionChunks() as EitherChunks),
  };
}

/** Collects the chunks of both kinds of streams. */
type EitherChunks = Chunks<ChatCompletionChunk & CompletionChunk>;

function observing(chunks: EitherChunks): Pick<Whole, "observe" | "observed"> {
  let first = true;
  return {
    observe: (each) => {
      if (!Array.isArray(each["choices"])) throw new Error(`its stream has an event that is no chunk: 'choices' is missing`);
      const chunk = first ? marked(each) : each;
      first = false;
      chunks.add(chunk as unknown as ChatCompletionChunk & CompletionChunk);
      return { chunk };
    },
    observed: () => {
      const whole = chunks.whole(true);
      if (whole === null) throw new Error("its stream had no chunk");
      return marked(whole as JsonObject);
    },
  };
}

/** A completion as chunks: the pieces of each choice, then the usage, if it was asked for and is known. */
function chunksOf(answer: JsonObject, body: JsonObject, piecesOf: (choice: JsonObject) => JsonObject[]): JsonObject[] {
  const { choices, usage, fm, ...base } = answer;
  const counts = usage != null && isObject(body["stream_options"]) && body["stream_options"]["include_usage"] === true;
  const object = base["object"] === "chat.completion" ? "chat.completion.chunk" : base["object"];
  const pieces = (choices as JsonObject[]).flatMap(piecesOf).map((piece) => [piece]);
  const chunks = [...pieces, ...(counts || pieces.length === 0 ? [[]] : [])];
  return chunks.map((some, index) => {
    const report = index === 0 ? { fm } : {};
    const count = counts ? { usage: index === chunks.length - 1 ? usage : null } : {};
    return { chunk: { ...base, object, choices: some, ...report, ...count } };
  });
}

function chatPieces({ index, message, finish_reason, logprobs = null }: JsonObject): JsonObject[] {
  const { role = "assistant", content, refusal, reasoning_content, tool_calls } = given(message);
  const piece = (delta: JsonObject, finish_reason: unknown = null): JsonObject => {
    return { index, delta, logprobs: null, finish_reason };
  };
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call: object, at) => ({ index: at, ...call })) : [];
  const isSaid = ([, text]: [string, unknown]): boolean => typeof text === "string" && text !== "";
  const said = Object.entries({ reasoning_content, content, refusal }).filter(isSaid);
  return [
    piece({ role, content: null }),
    ...said.map(([name, text]) => ({ ...piece({ [name]: text }), ...(name === "content" ? { logprobs } : {}) })),
    ...calls.map((call) => piece({ tool_calls: [call] })),
    piece({}, finish_reason ?? "stop"),
  ];
}

/** Embeddings and decisions have no stream. */
const none = (): never => {
  throw new Error("this answer has no stream");
};

function wholeDecision(_body: JsonObject, { model }: Base): Whole {
  return {
    name: "decision",
    of: (value) => {
      const answers = listOf(value, "answers", null, "list of answers");
      return marked({ model, usage: null, ...given(value), answers });
    },
    messages: none,
    observe: none,
    observed: none,
  };
}

function wholeEmbeddings(body: JsonObject, { model }: Base): Whole {
  return {
    name: "embeddings",
    of: (value) => {
      const data = listOf(value, "data", null, "list of embeddings").map((each, index) => {
        const { embedding, ...rest } = given(each);
        return { object: "embedding", index, ...rest, embedding: encoded(embedding, body["encoding_format"]) };
      });
      return marked({ object: "list", model, usage: null, ...given(value), data });
    },
    messages: none,
    observe: none,
    observed: none,
  };
}

/** OpenAI's SDK asks for base64 and decodes it, from the fallback too. */
function encoded(vector: unknown, format: unknown): unknown {
  if (format !== "base64" || !Array.isArray(vector)) return vector;
  return Buffer.from(Float32Array.from(vector as number[]).buffer).toString("base64");
}
