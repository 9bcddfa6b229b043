// client.generate: an answer that has passed checks, or else the host's fallback.
import { nearest } from "./check-options.js";
import { FmError, invalid, textOfResponse } from "./errors.js";
import { sourceOf } from "./fallback.js";
import { createResponse } from "./responses.js";
import { toStartError } from "./start-error.js";
import { signalOf, withSignal } from "./stream.js";
import { messageOf, toFmError } from "./thrown.js";
import type { JsonObject, RequestOptions, ResponseCreateParams, Transport } from "./types.js";
import { isObject } from "./types.js";
import type { Validator } from "./validate.js";

/** An answer that was rejected. */
export interface Rejection {
  /** The text of the model's answer. */
  text: string;
  /** The reason for the rejection. The next request to the model contains it. */
  reason: string;
}

/** The parameters of `client.generate`. */
export interface GenerateParams<T> {
  /** What to answer: a text, or message items. */
  input: string | readonly JsonObject[];
  instructions?: string | undefined;
  /** A JSON schema (draft 7 or 2020-12) of the value. Absent: the value is the answer's text. */
  schema?: JsonObject | undefined;
  /**
   * Cleans a value that fits the schema, before `validate` sees it. If it throws, the answer is rejected, and the error is the
   * reason.
   */
  sanitize?(value: unknown): T;
  /**
   * Returns true for a valid value; otherwise false or, better, the reason as a text. `sanitize` and `validate` must not return a
   * Promise.
   */
  validate?: ((value: T) => boolean | string | null | undefined) | undefined;
  /** How often the model is asked again after a rejected answer, with the reason. Default: 1. */
  retries?: number | undefined;
  /** Returns a value in place of the model's, if no answer passes or the model can't be asked. It gets the rejected answers. */
  fallback?: ((rejected: readonly Rejection[]) => T | Promise<T>) | undefined;
  /** More parameters of `responses.create`. Default: `temperature` 0 and `store` false. */
  request?:
    | Omit<ResponseCreateParams, "input" | "instructions" | "text" | "response_format" | "stream" | "background">
    | undefined;
}

/** The result of `client.generate`. */
export interface Generated<T> {
  value: T;
  /** Who gave the value: the model, or a fallback. */
  source: "local" | "fallback";
  /** The rejected answers, in order. */
  rejected: Rejection[];
}

const PLAIN = { temperature: 0, store: false } as const;
const NO_CHECK: Validator = () => null;

/**
 * Asks the model, checks the answer, asks again if needed, and at last calls `fallback`. Without `fallback`, rejects with an
 * FmError.
 */
export async function generate<T>(
  transport: Transport,
  params: GenerateParams<T>,
  options: RequestOptions = {},
): Promise<Generated<T>> {
  if (!isObject(params)) throw new FmError("INVALID_REQUEST", "The parameters of `generate` must be an object.");
  checkNames(params);
  checkRequest(params.request);
  const signal = signalOf(options);
  checkRetries(params.retries ?? 1);
  const rejected: Rejection[] = [];
  try {
    const check = params.schema === undefined ? NO_CHECK : await loadValidator(params.schema);
    for (let tries = (params.retries ?? 1) + 1; tries > 0; tries--) {
      const body = bodyOf(params, rejected.at(-1));
      const response = await withSignal(() => createResponse(transport, body), signal);
      const text = textOfResponse(response);
      const judged = judge(text, response.status === "incomplete", params, check);
      if ("value" in judged) return { value: judged.value, source: sourceOf(response), rejected };
      rejected.push({ text, reason: judged.reason });
    }
  } catch (reason) {
    if (signal?.aborted === true) throw reason;
    const error = toFmError(reason);
    // The fallback must not hide a mistake of the host.
    if (params.fallback === undefined || error.code === "INVALID_REQUEST" || error.code === "CLOSED") throw error;
  }
  if (params.fallback !== undefined) return { value: await params.fallback(rejected), source: "fallback", rejected };
  const what = `No answer passed. The last one: ${rejected.at(-1)?.reason ?? ""}`;
  throw new FmError("NO_VALID_ANSWER", what);
}

/** Loads the library with the first schema. */
async function loadValidator(schema: JsonObject): Promise<Validator> {
  const { validatorOf } = await import("./validate.js").catch((reason: unknown) => Promise.reject(toStartError(reason)));
  return validatorOf(schema);
}

/** All parameters of `generate`; true: the parameter is a function. */
const TAKEN: { readonly [Name in keyof Required<GenerateParams<unknown>>]: boolean } = {
  input: false,
  instructions: false,
  schema: false,
  sanitize: true,
  validate: true,
  retries: false,
  fallback: true,
  request: false,
};

/** Refuses unknown names. With a misspelt name, a check would never be made. */
function checkNames(params: object): void {
  for (const [name, value] of Object.entries(params)) {
    if (!Object.hasOwn(TAKEN, name)) {
      const meant = nearest(name, Object.keys(TAKEN), 3) ?? " Parameters of `responses.create` go into `request`.";
      throw invalid(name, `generate has no parameter '${name}'.${meant}`);
    }
    const fits = !TAKEN[name as keyof typeof TAKEN] || value === undefined || typeof value === "function";
    if (!fits) throw mistake(name, `it must be a function, not ${typeof value}`);
  }
}

/** The members that `request` must not have, and what to do instead. */
const NOT_IN_REQUEST: Readonly<Record<string, string>> = {
  input: "give it as the parameter `input`",
  instructions: "give them as the parameter `instructions`",
  text: "give the parameter `schema`",
  response_format: "give the parameter `schema`",
  stream: "the answer is checked as a whole. Leave it out",
  background: "the answer is waited for. Leave it out",
  tools: "a call has no value to check. Use `responses.create` for tools",
};

/** Refuses members that `generate` would overwrite, or with which there would be no answer to check. */
function checkRequest(request: unknown): void {
  if (request === undefined) return;
  if (!isObject(request)) throw mistake("request", "it must be an object");
  for (const [name, what] of Object.entries(NOT_IN_REQUEST)) {
    const value = request[name];
    if (value !== undefined && value !== null && value !== false) throw mistake(`request.${name}`, what);
  }
}

function checkRetries(retries: number): void {
  if (Number.isInteger(retries) && retries >= 0 && retries <= 10) return;
  throw mistake("retries", `an integer from 0 to 10, not ${String(retries)}`);
}

function mistake(param: string, what: string): FmError {
  return invalid(param, `Invalid '${param}': ${what}.`);
}

/** Makes the request. After a rejected answer, the request contains that answer and the reason for its rejection. */
function bodyOf<T>(params: GenerateParams<T>, last: Rejection | undefined): ResponseCreateParams {
  const { input, instructions, schema, request } = params;
  const format = schema === undefined ? {} : { text: { format: { type: "json_schema", name: "value", schema } } };
  const asked = { ...PLAIN, ...request, ...(instructions === undefined ? {} : { instructions }), ...format };
  if (last === undefined) return { ...asked, input };
  const question = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const again = `That answer can't be used. ${last.reason} Give another one.`;
  return {
    ...asked,
    input: [...question, { role: "assistant", content: last.text }, { role: "user", content: again }],
  };
}

/** Reads the value from an answer. `isCut`: the answer was cut at a limit. */
function judge<T>(
  text: string,
  isCut: boolean,
  params: GenerateParams<T>,
  check: Validator,
): { value: T } | { reason: string } {
  let value: unknown = text;
  if (params.schema !== undefined) {
    try {
      value = JSON.parse(text);
    } catch {
      return { reason: isCut ? "It was cut off by the limit on its tokens: it is too long for that." : "It is not JSON." };
    }
    const wrong = check(value);
    if (wrong !== null) return { reason: wrong };
  }
  return judgeValue(value, params);
}

function judgeValue<T>(raw: unknown, { sanitize, validate }: GenerateParams<T>): { value: T } | { reason: string } {
  let value: T;
  let verdict: unknown;
  try {
    value = withoutNoise(sanitize === undefined ? (raw as T) : sanitize(raw));
    verdict = withoutNoise(validate === undefined ? true : validate(value));
  } catch (error) {
    return { reason: messageOf(error) };
  }
  if (value instanceof Promise) throw mistake("sanitize", "it must return the value itself, not a Promise");
  if (verdict === true || verdict === null || verdict === undefined) return { value };
  if (verdict === false) return { reason: "It does not fit." };
  if (typeof verdict === "string") return { reason: verdict };
  const kind = verdict instanceof Promise ? "a Promise" : typeof verdict;
  throw mistake("validate", `it must return true, false or a sentence, not ${kind}`);
}

/** Refuses a Promise. Its rejection must not end the host. */
function withoutNoise<V>(value: V): V {
  if (value instanceof Promise) value.catch(() => {});
  return value;
}
