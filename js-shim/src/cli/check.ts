// `fm-proxy models check`: whether a model is right in text, JSON and tools, how fast it is, and what memory it takes.
import { createClient, FmError, type Client, type ResponseCreateParams, type ResponseObject } from "../index.js";
import { noteUsable, readFacts } from "../later.js";
import { about, memoryAhead, warnOfMemory } from "./memory.js";
import { defaultPath, modelOption } from "./models.js";
import { bytes, errorText, plain, ProgressLine, say, sayJson, table } from "./output.js";
import type { Arguments } from "./parse.js";

/** A task for the model: what is asked, and whether an answer is right. */
interface Task {
  name: string;
  body: ResponseCreateParams & { stream?: false };
  isRight(answer: ResponseObject): boolean;
  /** What follows from a wrong answer. */
  weakness: string;
}

interface Finding {
  name: string;
  right: boolean;
  /** Whether the request failed: then nothing is known of the model. */
  failed: boolean;
  /** Whether it failed because this helper can't do it, whatever the model is. */
  refused: boolean;
  /** The model's answer, or why there is none. */
  answer: string;
}

const PERSON = { name: { type: "string" }, age: { type: "integer" }, city: { type: "string" } };
const schemaOf = (properties: object): Record<string, unknown> => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** The tasks. A model of one thousand million parameters does each of them. */
export const TASKS: readonly Task[] = [
  {
    name: "text",
    body: { input: "What is the capital of France? Answer with its name alone." },
    isRight: ({ output_text }) => /\bparis\b/i.test(output_text ?? ""),
    weakness: "Its answers are often wrong.",
  },
  {
    name: "JSON",
    body: {
      instructions: "Give the person's name, age and city.",
      input: "Anna is 34 years old and lives in Oslo.",
      text: { format: { type: "json_schema", name: "person", strict: true, schema: schemaOf(PERSON) } },
    },
    isRight: ({ output_text }) => {
      const { name, age, city } = parsed(output_text);
      return name === "Anna" && age === 34 && city === "Oslo";
    },
    weakness: "Its JSON has the right form, which the engine enforces, but wrong values.",
  },
  {
    name: "tools",
    body: {
      input: "What is the weather in Rome at the moment?",
      tools: [
        {
          type: "function",
          name: "get_weather",
          description: "The weather in a city at the moment.",
          strict: true,
          parameters: schemaOf({ city: { type: "string" } }),
        },
      ],
    },
    isRight: ({ output }) =>
      output.some((item) => item.type === "function_call" && /\brome\b/i.test(String(parsed(item["arguments"])["city"]))),
    weakness: "It is too weak for tools: choose a larger one for them (npx fm-proxy models search).",
  },
];

/** The most tokens of an answer: enough for a model that thinks first. */
const LONGEST = 1500;
/** Most characters of an answer that are shown. */
const SHOWN = 100;

export async function checkOne({ words, options }: Arguments): Promise<number> {
  const path = (await modelOption(words[0])) ?? (await defaultPath());
  await warnOfMemory(path);
  const status = await checkModel(path, options["json"] === true);
  if (path !== undefined) await noteUsable(path, true); // the model was loaded
  return status;
}

/** Prints what a model does with each task. The exit status: 0 if it does all tasks right that the helper supports. */
export async function checkModel(path: string | undefined, json: boolean): Promise<number> {
  const client = createClient({ model: path });
  try {
    const found = await examine(client, path);
    if (json) sayJson(found);
    else sayFound(found);
    return found.findings.every(({ right, refused }) => right || refused) ? 0 : 1;
  } finally {
    await client.close();
  }
}

interface Examined {
  model: string;
  findings: Finding[];
  /** Tokens a second; null: unknown. */
  speed: { read: number; written: number } | null;
  memory_bytes: number | null;
  load_ms: number;
}

function sayFound({ findings, speed, memory_bytes: memory, load_ms: ms }: Examined): void {
  say(table(findings.map((it) => [labelOf(it), it.name, it.refused ? it.answer : it.answer.slice(0, SHOWN)])));
  const load = `loads in ${(ms / 1000).toFixed(1)} s`;
  if (memory !== null) say(`It takes about ${bytes(memory)} of memory with a full context, and ${load}.`);
  if (speed !== null) say(`It reads ${speed.read} tokens a second, and writes ${speed.written}.`);
  for (const { name, weakness } of TASKS) if (findings.some((it) => it.name === name && !it.right && !it.failed)) say(weakness);
}

const labelOf = ({ right, refused }: Finding): string => (right ? "ok  " : refused ? "-   " : "FAIL");

async function examine(client: Client, path: string | undefined): Promise<Examined> {
  const line = new ProgressLine();
  try {
    const memory = about(await memoryAhead(path));
    line.update(`loading the model${memory === "" ? "" : `, ${memory} of memory`}`);
    const { model, memory_bytes, load_ms } = await client.models.load();
    const embeds = path !== undefined && (await readFacts(path)).embeds;
    const findings: Finding[] = embeds ? [await embed(client)] : [];
    let speed: Examined["speed"] = null;
    for (const task of embeds ? [] : TASKS) {
      line.update(`asking for ${task.name}`);
      const { finding, timings } = await ask(client, task);
      findings.push(finding);
      if (timings !== undefined) speed = timings;
    }
    return { model, findings, speed, memory_bytes, load_ms };
  } finally {
    line.end();
  }
}

async function ask(client: Client, task: Task): Promise<{ finding: Finding; timings?: NonNullable<Examined["speed"]> }> {
  const { name } = task;
  try {
    const fm = { timings: true };
    const body = { ...task.body, temperature: 0, max_output_tokens: LONGEST, store: false, fm };
    const answer = await client.responses.create(body);
    const { prompt_tokens_per_second: read, output_tokens_per_second: written } = answer.fm?.timings ?? {};
    const finding = { ...answered, name, right: task.isRight(answer), answer: plain(textOf(answer)) };
    return read && written ? { finding, timings: { read: Math.round(read), written: Math.round(written) } } : { finding };
  } catch (error) {
    return { finding: failedWith(name, error) };
  }
}

async function embed(client: Client): Promise<Finding> {
  try {
    const { data } = await client.embeddings.create({ input: "Rome" });
    return { ...answered, name: "vectors", right: true, answer: `${data[0]?.embedding.length ?? 0} numbers a text` };
  } catch (error) {
    return failedWith("vectors", error);
  }
}

const answered = { failed: false, refused: false };

/**
 * The finding for a failed request. The requests are right, so if one is refused, this helper was built without what it needs.
 */
function failedWith(name: string, error: unknown): Finding {
  const refused = error instanceof FmError && error.code === "INVALID_REQUEST";
  return { name, right: false, failed: true, refused, answer: plain(errorText(error)) };
}

/** The text of an answer, or its calls. */
function textOf({ output, output_text, status }: ResponseObject): string {
  const calls = output.map((item) => (item.type === "function_call" ? `${item["name"]}(${item["arguments"]})` : ""));
  const said = [output_text ?? "", ...calls].join(" ").replace(/\s+/g, " ").trim();
  return said === "" ? `nothing (${status})` : said;
}

function parsed(text: unknown): Record<string, unknown> {
  try {
    return JSON.parse(String(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}
