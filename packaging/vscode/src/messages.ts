// Converts VS Code's chat messages to the body of a request to the Responses API.
import * as vscode from "vscode";
import type { JsonObject, ResponseCreateParams } from "fm-proxy";

/** Options of a request that mean the same to VS Code's callers and to the helper. */
const PASSED = ["temperature", "top_p", "top_k", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty"];
/** The role of a system message. VS Code's stable API does not define it. */
const SYSTEM = 3;

/** The request to the helper. */
export function bodyOf(
  model: vscode.LanguageModelChatInformation,
  messages: readonly vscode.LanguageModelChatRequestMessage[],
  { modelOptions = {}, tools = [], toolMode }: vscode.ProvideLanguageModelChatResponseOptions,
): ResponseCreateParams {
  const passed = PASSED.filter((name) => modelOptions[name] !== undefined).map((name) => [name, modelOptions[name]]);
  const body: ResponseCreateParams = {
    model: model.id,
    input: inputOf(messages),
    store: false,
    max_output_tokens: maxTokens(modelOptions) ?? model.maxOutputTokens,
    ...Object.fromEntries(passed),
  };
  if (tools.length === 0) return body;
  const required = toolMode === vscode.LanguageModelChatToolMode.Required;
  return { ...body, tools: tools.map(toolOf), tool_choice: required ? "required" : "auto" };
}

/** The messages as items. A message of several parts is several items, in their order. */
export function inputOf(messages: readonly vscode.LanguageModelChatRequestMessage[]): JsonObject[] {
  return messages.flatMap((message) => itemsOf(message));
}

function itemsOf({ role, content }: vscode.LanguageModelChatRequestMessage): JsonObject[] {
  const items: JsonObject[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") items.push({ role: roleOf(role), content: text });
    text = "";
  };
  for (const part of content) {
    if (part instanceof vscode.LanguageModelTextPart) text += part.value;
    if (part instanceof vscode.LanguageModelToolCallPart) {
      flush();
      items.push({ type: "function_call", call_id: part.callId, name: part.name, arguments: JSON.stringify(part.input) });
    }
    if (part instanceof vscode.LanguageModelToolResultPart) {
      flush();
      items.push({ type: "function_call_output", call_id: part.callId, output: resultText(part) });
    }
    // Other parts have data of kinds that the model was not registered for.
  }
  flush();
  return items;
}

function roleOf(role: vscode.LanguageModelChatMessageRole): string {
  if ((role as number) === SYSTEM) return "system";
  return role === vscode.LanguageModelChatMessageRole.Assistant ? "assistant" : "user";
}

/** A result's text; parts that are not text become JSON. */
function resultText({ content }: vscode.LanguageModelToolResultPart): string {
  const texts = content.map((part) => (part instanceof vscode.LanguageModelTextPart ? part.value : JSON.stringify(part)));
  return texts.join("");
}

function toolOf({ name, description, inputSchema }: vscode.LanguageModelChatTool): JsonObject {
  const parameters = inputSchema ?? { type: "object", properties: {} };
  return { type: "function", name, description, parameters, strict: false };
}

/** The token limit of the answer, under any of its usual names. */
function maxTokens(options: { readonly [name: string]: unknown }): number | undefined {
  const value = options["max_output_tokens"] ?? options["max_tokens"] ?? options["maxTokens"];
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}
