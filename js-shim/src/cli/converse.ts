// A conversation on a terminal: `fm-proxy run` without a prompt.
import { createInterface } from "node:readline/promises";
import { createClient, type Client, type ResponseCreateParams } from "../index.js";
import { findModel } from "../later.js";
import { NO_MODEL } from "../models-folder.js";
import { answer } from "./answer.js";
import { about } from "./memory.js";
import { knownModels, modelOption, modelVariable } from "./models.js";
import { errorText, fail, plain, table } from "./output.js";

const COMMANDS: readonly (readonly [string, string])[] = [
  ["/model [NAME]", "lists the models, or goes on with another one, in a new conversation"],
  ["/clear", "begins a new conversation"],
  ["/exit", "ends; Ctrl-D does too"],
  ["/help", "lists these commands; Ctrl-C ends an answer"],
];
/** What people type to end a conversation, with or without a slash before it. */
const ENDS: ReadonlySet<string> = new Set(["exit", "quit", "bye"]);
/** Matches a command. A question may begin with a path, so a command has no more text, except the name of a model. */
const COMMAND = /^\/(?:([a-z]+)|(model)\s+(.*))$/i;

/** Reads questions and prints answers until the input ends. It may use other clients besides this one, and closes them. */
export async function converse(first: Client, model: string | undefined, settings: ResponseCreateParams): Promise<number> {
  const talk = new Conversation(first, settings);
  tell(`${await introduction(model)} /help lists the commands.`);
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: "> " });
  let isOpen = true;
  lines.once("close", () => (isOpen = false));
  // Ctrl-C on the terminal goes to the line editor. An answer that is being printed waits for the signal.
  lines.on("SIGINT", () => process.emit("SIGINT") || lines.close());
  lines.prompt();
  for await (const line of lines) {
    const [, alone, model, word] = COMMAND.exec(line.trim()) ?? [];
    const command = (alone ?? model)?.toLowerCase();
    if (ENDS.has(command ?? line.trim().toLowerCase())) break;
    if (command !== undefined) await talk.obey(command, word);
    else if (line.trim() !== "") await talk.ask(line);
    if (isOpen) lines.prompt();
  }
  lines.close();
  await talk.close();
  return 0;
}

class Conversation {
  readonly #first: Client;
  readonly #settings: ResponseCreateParams;
  #client: Client;
  #previous: string | undefined;

  constructor(client: Client, settings: ResponseCreateParams) {
    this.#first = client;
    this.#client = client;
    this.#settings = settings;
  }

  async ask(input: string): Promise<void> {
    const turn = this.#previous === undefined ? {} : { previous_response_id: this.#previous };
    this.#previous = (await answer(this.#client, { ...this.#settings, input, ...turn })).id ?? this.#previous;
  }

  async obey(command: string, word: string | undefined): Promise<void> {
    if (command === "help") tell(table(COMMANDS));
    else if (command === "clear") this.#previous = undefined;
    else if (command === "model" && word === undefined) tell(await listOfModels());
    else if (command === "model") await this.#take(word as string);
    else fail(`there is no command /${command}; /help lists them`);
  }

  /** Switches to another model, if it is on this machine. */
  async #take(name: string): Promise<void> {
    try {
      const client = createClient({ model: await modelOption(name) });
      await this.close();
      this.#client = client;
      this.#previous = undefined;
      tell(`${await introduction(name)} A new conversation begins.`);
    } catch (error) {
      fail(errorText(error));
    }
  }

  /** Closes the client, unless it is the first one, which the caller closes. */
  async close(): Promise<void> {
    if (this.#client !== this.#first) await this.#client.close();
  }
}

/** Prints text that is not part of an answer. */
function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Which model answers, and how much memory it takes. */
async function introduction(model: string | undefined): Promise<string> {
  const models = await knownModels();
  const found = model === undefined ? models.find((it) => it.default) : await findModel(model, models);
  const memory = about(found?.memory ?? null);
  return `${plain(model ?? found?.name ?? "The model")} answers${memory === "" ? "" : `, with ${memory} of memory`}.`;
}

async function listOfModels(): Promise<string> {
  const models = await knownModels();
  if (models.length === 0) return NO_MODEL;
  return table(models.map((it) => [it.default && modelVariable() === undefined ? "*" : "", it.name, it.source]));
}
