// client.decide: questions by name, and calibration.
import { createDecision } from "./decisions.js";
import { FmError, invalid } from "./errors.js";
import { withOptions } from "./stream.js";
import { toFmError } from "./thrown.js";
import type { CommonFmParams, DecisionAnswer, JsonObject, RequestOptions, Transport } from "./types.js";
import { isObject } from "./types.js";

/** An answer that may be chosen: its value alone, or with a description that the model reads. */
export type DecideChoice = string | boolean | { value: string | boolean; description?: string };

/** A step of a scale: its label alone, or with a description that the model reads. */
export type DecideLevel = string | { label: string; description?: string };

/** A question: yes or no (a text alone is one too), one of `choices`, or a place on a scale of `levels`, the lowest first. */
export type DecideQuestion =
  | string
  | { instructions: string; choices?: undefined; levels?: undefined }
  | { instructions: string; choices: readonly DecideChoice[]; levels?: undefined }
  | { instructions: string; choices?: undefined; levels: readonly DecideLevel[] };

/** The parameters of `client.decide`. */
export interface DecideParams<Questions> {
  /** The text that the questions are about, or a conversation. */
  input: string | readonly object[];
  questions: Questions;
  /** The result of `client.calibrate` for questions of these names. */
  calibration?: Calibration | null | undefined;
  model?: string | null | undefined;
  fm?: CommonFmParams | undefined;
}

type ValueOf<Choice> = Choice extends { value: infer Value } ? Value : Choice;

/** The answer to a question. */
export interface Decided<Value = string | boolean | number> {
  /** The most likely answer; for a scale the mean of its levels, which count from 0. */
  value: Value;
  /** The probability of the most likely answer or level. */
  confidence: number;
  /** Of every answer, in the order of the question (true before false); of a scale, by label. Their sum is 1. */
  probabilities: { value: string | boolean; probability: number }[];
}

/** The answers by the names of their questions. */
export type DecidedAll<Questions> = {
  [Name in keyof Questions]: Questions[Name] extends { choices: readonly (infer Choice)[] }
    ? Decided<ValueOf<Choice>>
    : Questions[Name] extends { levels: readonly unknown[] }
      ? Decided<number>
      : Decided<boolean>;
};

/** Answers that were not calibrated, and the right answers. Questions whose right answer is unknown are left out. */
export interface CalibrationExample {
  answers: Record<string, Decided>;
  /** The right answers: for a scale, the label. */
  labels: Record<string, string | boolean>;
}

/**
 * How probabilities are corrected, by the names of questions. It can be kept as JSON. It fits one model and one wording of a
 * question.
 */
export type Calibration = Record<string, { scale: number; shifts: { value: string | boolean; shift: number }[] }>;

const LEAST = 10; // examples of a question
const FLOOR = 1e-9; // a smaller probability counts as this one
const WEIGHT = 0.5; // of the penalty for corrections: one example counts 1
const STEPS = 3000; // the fit has ended long before

/** {@inheritDoc Client.decide} */
export async function decide<const Questions extends Record<string, DecideQuestion>>(
  transport: Transport,
  params: DecideParams<Questions>,
  options: RequestOptions = {},
): Promise<DecidedAll<Questions>> {
  if (!isObject(params)) throw invalid("params", "decide needs an object with `input` and `questions`.");
  const { questions, calibration, ...rest } = params;
  if (!isObject(questions) || Object.keys(questions).length === 0) {
    throw invalid("questions", "Invalid 'questions': it must be an object with a question for each name.");
  }
  const names = Object.keys(questions);
  const body = { ...rest, questions: names.map((name) => bodyOf(name, (questions as JsonObject)[name])) };
  const { answers } = await withOptions(() => createDecision(transport, body), options).catch((reason: unknown) => {
    throw named(toFmError(reason), names);
  });
  const decided = answers.map((answer, i) => [names[i], decidedOf(answer, calibration?.[names[i] ?? ""])]);
  return Object.fromEntries(decided) as DecidedAll<Questions>;
}

/** The question in the form of the Decisions API. What is not valid is passed on, and the helper refuses it. */
function bodyOf(name: string, question: unknown): JsonObject {
  const given = typeof question === "string" ? { instructions: question } : question;
  if (!isObject(given)) {
    throw invalid(`questions.${name}`, `Invalid 'questions.${name}': it must be a text, or an object with 'instructions'.`);
  }
  const { choices, levels, ...rest } = given;
  if (choices !== undefined && levels !== undefined) {
    throw invalid(`questions.${name}`, `Invalid 'questions.${name}': it has 'choices' or 'levels', not both.`);
  }
  const each = (list: unknown, key: string): unknown =>
    Array.isArray(list) ? list.map((one: unknown) => (isObject(one) ? one : { [key]: one })) : list;
  if (choices !== undefined) return { type: "choice", name, ...rest, choices: each(choices, "value") };
  if (levels !== undefined) return { type: "score", name, ...rest, levels: each(levels, "label") };
  return { type: "predicate", name, ...rest };
}

/** The error with the name of the question in place of its number. */
function named(error: FmError, names: readonly string[]): FmError {
  const { param } = error.openai;
  const found = /^questions\[(\d+)\]/.exec(param ?? "");
  if (param === null || found === null) return error;
  const [from] = found;
  const to = `questions.${names[Number(found[1])]}`;
  const openai = { ...error.openai, param: param.replace(from, to), message: error.openai.message.replaceAll(from, to) };
  return new FmError(error.code, error.detail.replaceAll(from, to), { openai, cause: error });
}

function decidedOf(answer: DecisionAnswer, correction: Calibration[string] | undefined): Decided {
  const raw =
    answer.type === "predicate"
      ? [true, false].map((value) => ({ value, probability: value ? answer.probability : 1 - answer.probability }))
      : answer.type === "choice"
        ? answer.probabilities.map(({ value, probability }) => ({ value, probability }))
        : answer.probabilities.map(({ label, probability }) => ({ value: label, probability }));
  const probabilities = correction === undefined ? raw : corrected(raw, correction);
  const confidence = Math.max(...probabilities.map(({ probability }) => probability));
  const likely = probabilities.find(({ probability }) => probability === confidence);
  const mean = probabilities.reduce((sum, { probability }, level) => sum + level * probability, 0);
  return { value: answer.type === "score" ? mean : (likely?.value ?? false), confidence, probabilities };
}

type Probabilities = Decided["probabilities"];

/** The log probabilities, above that of the likeliest one. */
function logits(probabilities: Probabilities): number[] {
  const logs = probabilities.map(({ probability }) => Math.log(Math.max(probability, FLOOR)));
  const most = Math.max(...logs);
  return logs.map((log) => log - most);
}

function softmax(values: readonly number[]): number[] {
  const most = Math.max(...values);
  const shares = values.map((value) => Math.exp(value - most));
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.map((share) => share / sum);
}

function corrected(probabilities: Probabilities, { scale, shifts }: Calibration[string]): Probabilities {
  const of = new Map(shifts.map(({ value, shift }) => [value, shift]));
  const logs = logits(probabilities);
  const shares = softmax(probabilities.map(({ value }, i) => scale * (logs[i] ?? 0) + (of.get(value) ?? 0)));
  return probabilities.map(({ value }, i) => ({ value, probability: shares[i] ?? 0 }));
}

/** {@inheritDoc Client.calibrate} */
export function calibrate(examples: readonly CalibrationExample[]): Calibration {
  if (!Array.isArray(examples)) throw invalid("examples", "calibrate needs a list of examples: { answers, labels }.");
  examples.forEach((example: unknown, i) => {
    if (isObject(example) && isObject(example["answers"]) && isObject(example["labels"])) return;
    throw invalid(`examples[${i}]`, `Invalid 'examples[${i}]': it must be an object with 'answers' and 'labels'.`);
  });
  const names = new Set(examples.flatMap(({ labels }) => Object.keys(labels)));
  return Object.fromEntries(Array.from(names, (name) => [name, calibrated(name, examples)]));
}

function calibrated(name: string, examples: readonly CalibrationExample[]): Calibration[string] {
  const rows: { logs: number[]; right: number }[] = [];
  let values: (string | boolean)[] = [];
  examples.forEach(({ answers, labels }, i) => {
    const label = labels[name];
    if (label === undefined) return;
    const probabilities = answers[name]?.probabilities ?? [];
    const own = probabilities.map(({ value }) => value);
    if (rows.length === 0) values = own;
    const right = own.indexOf(label);
    const same = own.length === values.length && own.every((value, k) => value === values[k]);
    if (right < 0 || !same) {
      const missing = `its answers do not have ${JSON.stringify(label)}`;
      const why = right < 0 ? missing : "its answers are not those of the first example";
      throw invalid(`examples[${i}].labels.${name}`, `Invalid 'examples[${i}].labels.${name}': ${why}.`);
    }
    rows.push({ logs: logits(probabilities), right });
  });
  if (rows.length < LEAST) {
    throw invalid("examples", `Invalid 'examples': '${name}' has ${rows.length} labels, and needs at least ${LEAST}.`);
  }
  const { scale, shifts } = fit(rows, values.length);
  return { scale, shifts: values.map((value, k) => ({ value, shift: shifts[k] ?? 0 })) };
}

/**
 * The correction with the highest likelihood of the right answers, less a penalty for its size. The function is convex, so steps
 * down its gradient end at the one minimum. A step is 1 / L, where L bounds the curvature.
 */
function fit(rows: readonly { logs: number[]; right: number }[], count: number): { scale: number; shifts: number[] } {
  let scale = 1;
  let shifts = Array.from({ length: count }, () => 0);
  const bound = rows.reduce((sum, { logs }) => sum + (1 + logs.reduce((total, log) => total + log * log, 0)) / 2, WEIGHT);
  for (let step = 0; step < STEPS; step++) {
    let slope = WEIGHT * (scale - 1);
    const slopes = shifts.map((shift) => WEIGHT * shift);
    for (const { logs, right } of rows) {
      const shares = softmax(logs.map((log, k) => scale * log + (shifts[k] ?? 0)));
      shares.forEach((share, k) => {
        const error = share - (k === right ? 1 : 0);
        slope += error * (logs[k] ?? 0);
        slopes[k] = (slopes[k] ?? 0) + error;
      });
    }
    scale = Math.max(0, scale - slope / bound);
    shifts = shifts.map((shift, k) => shift - (slopes[k] ?? 0) / bound);
  }
  return { scale, shifts };
}
