// Third-party agents, unmodified, with a real model: a task that needs three tools, each with the result of the one before. It
// is solved if each tool was called with the right arguments, in this order, and the answer has the last result. Temperature 0.
//
//   node tests/models/agents.mjs MODEL
//
// Prints a table; the exit status is 1 if a task was not solved. tests/models.sh builds what this needs.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createFmProxy } from "../../js-shim/dist/esm/ai.js";
import { createClient } from "../../js-shim/dist/esm/index.js";

const root = resolve(fileURLToPath(import.meta.url), "../../..");
const { resolve: path } = createRequire(join(root, "tests/js/package.json"));
const load = (name) => import(pathToFileURL(path(name)).href);
const { default: OpenAI } = await load("openai-7");
const { z } = await load("zod");
const ai = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const agents = await load("@openai/agents");

const TURNS = 8;
const TOKENS = 256;
const SYSTEM = "You answer with the help of tools. Call one tool at a time, with values that the user or a tool gave you.";
const TASK =
  "What is the temperature in Linz, in degrees Fahrenheit? First look up the city's id, then the temperature of that id " +
  "in Celsius, then convert it.";
const RESULT = "63.5";
const TOOLS = [
  {
    name: "find_city",
    description: "Looks up the id of a city by its name",
    parameters: z.object({ name: z.string().describe("the name of the city") }),
    run: ({ name }) => (name === "Linz" ? { id: 4711 } : { error: `no city ${name}` }),
  },
  {
    name: "get_temperature",
    description: "The current temperature of a city, in degrees Celsius",
    parameters: z.object({ city_id: z.number().int().describe("the id of the city, from find_city") }),
    run: ({ city_id }) => (city_id === 4711 ? { celsius: 17.5 } : { error: `no id ${city_id}` }),
  },
  {
    name: "to_fahrenheit",
    description: "Converts a temperature from degrees Celsius to degrees Fahrenheit",
    parameters: z.object({ celsius: z.number().describe("degrees Celsius") }),
    run: ({ celsius }) => ({ fahrenheit: celsius * 1.8 + 32 }),
  },
];
const CALLS = [
  ["find_city", { name: "Linz" }],
  ["get_temperature", { city_id: 4711 }],
  ["to_fahrenheit", { celsius: 17.5 }],
];

/** The tools, and the arguments with which they were called. */
function recorded() {
  const seen = [];
  const tools = TOOLS.map(({ run, ...tool }) => ({
    ...tool,
    run: (input) => {
      seen.push([tool.name, input]);
      return JSON.stringify(run(input));
    },
  }));
  return { seen, tools };
}

async function runTools({ openai, id }, tools) {
  const runner = openai.chat.completions.runTools(
    {
      model: id,
      messages: [
        { role: "system", content: SYSTEM },
        { role: "user", content: TASK },
      ],
      temperature: 0,
      max_completion_tokens: TOKENS,
      tools: tools.map(({ name, description, parameters, run }) => ({
        type: "function",
        function: { name, description, parameters: z.toJSONSchema(parameters), parse: JSON.parse, function: run },
      })),
    },
    { maxChatCompletions: TURNS },
  );
  return runner.finalContent();
}

const withAgents = (Model) => async ({ openai, id }, tools) => {
  agents.setTracingDisabled(true);
  const agent = new agents.Agent({
    name: "Assistant",
    instructions: SYSTEM,
    model: new Model(openai, id),
    tools: tools.map(({ run, ...tool }) => agents.tool({ ...tool, execute: run })),
    modelSettings: { temperature: 0, maxTokens: TOKENS },
  });
  const { finalOutput } = await agents.run(agent, TASK, { maxTurns: TURNS });
  return finalOutput;
};

const withAi = (api) => async ({ client, id }, tools) => {
  const { text } = await ai.generateText({
    model: createFmProxy(client, createOpenAI)[api](id),
    system: SYSTEM,
    prompt: TASK,
    temperature: 0,
    maxOutputTokens: TOKENS,
    maxRetries: 0,
    stopWhen: ai.isStepCount(TURNS),
    tools: Object.fromEntries(
      tools.map(({ name, description, parameters, run }) => [
        name,
        ai.tool({ description, inputSchema: parameters, execute: run }),
      ]),
    ),
  });
  return text;
};

const LOOPS = [
  ["openai, runTools", runTools],
  ["Agents SDK, responses", withAgents(agents.OpenAIResponsesModel)],
  ["Agents SDK, chat/completions", withAgents(agents.OpenAIChatCompletionsModel)],
  ["AI SDK, responses", withAi("responses")],
  ["AI SDK, chat/completions", withAi("chat")],
];

const model = resolve(process.argv[2]);
const client = createClient({ helperPath: join(root, "build/bin/fm-proxy"), engine: "llama", model });
const openai = new OpenAI({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch, maxRetries: 0 });
const [{ id }] = (await client.models.list()).data;
console.log("| Loop | ends right | calls | answer |\n|---|---|---|---|");
for (const [name, loop] of LOOPS) {
  const { seen, tools } = recorded();
  const answer = await loop({ client, openai, id }, tools).catch((error) => `${error}`);
  const right = JSON.stringify(seen) === JSON.stringify(CALLS) && answer?.includes(RESULT);
  const calls = seen.map(([tool, input]) => `${tool}(${JSON.stringify(input)})`).join(", ");
  console.log(`| ${name} | ${right ? "yes" : "**no**"} | ${calls} | ${`${answer}`.replaceAll("\n", " ")} |`);
  if (!right) process.exitCode = 1;
}
await client.close();
