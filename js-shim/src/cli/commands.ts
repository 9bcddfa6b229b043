// The commands, a row each.
import { bench } from "./helper.js";
import { checkOne } from "./check.js";
import { completion } from "./completion.js";
import { doctor } from "./doctor.js";
import { listModels, removeOne, searchModels, useOne, verifyAll } from "./models.js";
import type { Command } from "./parse.js";
import { pullOne } from "./pull.js";
import { ask } from "./run.js";

const JSON_OPTION = { name: "json", help: "prints JSON" };

export const COMMANDS: readonly Command[] = [
  {
    words: "run",
    takes: "[PROMPT]",
    count: [0, 1],
    summary: "Asks the model; without a prompt, a conversation",
    options: [
      { name: "model", value: "MODEL", help: "a name of `models list` or of a download, or a GGUF file" },
      { name: "instructions", value: "TEXT", help: "what the model is told first" },
      { name: "max-output-tokens", value: "N", help: "the longest answer" },
      { name: "temperature", value: "T", help: "how random answers are: 0 (not at all) to 2" },
    ],
    run: ask,
  },
  {
    words: "models list",
    takes: "",
    count: [0, 0],
    summary: "Lists the models, those that other programs have downloaded too",
    options: [JSON_OPTION],
    run: listModels,
  },
  {
    words: "models search",
    takes: "[WORD]",
    count: [0, 1],
    summary: "Lists models with short names to pull: size, memory, licence, what they are good for",
    options: [JSON_OPTION],
    run: searchModels,
  },
  {
    words: "models pull",
    takes: "MODEL",
    count: [1, 1],
    summary: "Downloads a model: a name of `models search`, OWNER/NAME[:QUANT] of Hugging Face, or a link",
    options: [
      { name: "sha256", value: "HEX", help: "the SHA-256 that the file must have" },
      { name: "no-check", help: "does not try the model afterwards, as `models check` does; nor does --json" },
      JSON_OPTION,
    ],
    run: pullOne,
  },
  {
    words: "models use",
    takes: "NAME",
    count: [1, 1],
    summary: "Chooses the model that answers where none is named, for all applications",
    options: [],
    run: useOne,
  },
  {
    words: "models check",
    takes: "[NAME]",
    count: [0, 1],
    summary: "Asks a model for a text, for JSON and for a call of a tool; tells its speed, and estimates its memory",
    options: [JSON_OPTION],
    run: checkOne,
  },
  {
    words: "models rm",
    takes: "ID",
    count: [1, 1],
    summary: "Deletes a downloaded model; never one of another program",
    options: [],
    run: removeOne,
  },
  {
    words: "models verify",
    takes: "[ID]",
    count: [0, 1],
    summary: "Compares the files with their SHA-256 of the download",
    options: [JSON_OPTION],
    run: verifyAll,
  },
  {
    words: "doctor",
    takes: "",
    count: [0, 0],
    summary: "Tells what works, what does not, and what to do",
    options: [JSON_OPTION, { name: "model", value: "MODEL", help: "the model that is tried" }],
    run: doctor,
  },
  {
    words: "bench",
    takes: "",
    count: [0, 0],
    summary: "Measures how fast the model is on this machine, in a minute or two",
    options: [JSON_OPTION, { name: "model", value: "MODEL", help: "the model that is measured" }],
    run: bench,
  },
  {
    words: "completion",
    takes: "SHELL",
    count: [1, 1],
    summary: "Prints completions for bash, zsh or fish",
    options: [],
    run: ({ words }) => completion(words[0] ?? "", COMMANDS),
  },
];
