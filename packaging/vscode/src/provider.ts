// The local models as chat models of VS Code, for its chat and for other extensions.
import * as vscode from "vscode";
import type { FmError, ResponseEvent } from "fm-proxy";
import { asFmError, type LocalModel, type ModelEntry } from "./local-model.js";
import { bodyOf, inputOf } from "./messages.js";
import { cancellable } from "./work.js";

/** The tokens of a context, which question and answer share. The default is 8,192 at most; Apple's model has 4,096. */
const MAX_TOKENS = { maxInputTokens: 6144, maxOutputTokens: 2048 };
const MAX_TOKENS_OF_APPLE = { maxInputTokens: 3072, maxOutputTokens: 1024 };
/** The estimate if a model can't be asked: in English and in code, a token has about four bytes. */
const BYTES_PER_TOKEN = 4;

/** Gives VS Code the models of the helper. */
export class ChatProvider implements vscode.LanguageModelChatProvider, vscode.Disposable {
  readonly #local: LocalModel;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listener: vscode.Disposable;
  /** For each model, the tokens of a prompt that do not belong to the text itself. */
  readonly #frames = new Map<string, number>();

  /** Tells VS Code to ask for the models again. */
  readonly onDidChangeLanguageModelChatInformation = this.#changed.event;

  constructor(local: LocalModel) {
    this.#local = local;
    this.#listener = local.onDidChange(() => {
      this.#frames.clear();
      this.#changed.fire();
    });
  }

  /** Ends the events. */
  dispose(): void {
    this.#listener.dispose();
    this.#changed.dispose();
  }

  /** The list of models; empty if there is no helper or no model. Never asks the user. */
  async provideLanguageModelChatInformation(
    _options: vscode.PrepareLanguageModelChatModelOptions,
    token: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelChatInformation[]> {
    const ready = await this.#local.isReady();
    const { status } = this.#local;
    if (!ready || status.kind !== "ready" || token.isCancellationRequested) return [];
    return status.models.map((model) => informationOf(model, status.tools));
  }

  /** Streams the model's answer: its text as it comes, and each call of a tool when it is whole. */
  async provideLanguageModelChatResponse(
    model: vscode.LanguageModelChatInformation,
    messages: readonly vscode.LanguageModelChatRequestMessage[],
    options: vscode.ProvideLanguageModelChatResponseOptions,
    progress: vscode.Progress<vscode.LanguageModelResponsePart>,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const body = bodyOf(model, messages, options);
    try {
      await cancellable(token, async (signal) => {
        for await (const event of this.#local.client.responses.stream(body, { signal })) {
          const part = partOf(event);
          if (part !== null) progress.report(part);
        }
      });
    } catch (error) {
      throw error instanceof vscode.CancellationError ? error : modelError(asFmError(error));
    }
  }

  /** Counts with the model's own tokenizer, without the tokens that the chat template adds. */
  async provideTokenCount(
    model: vscode.LanguageModelChatInformation,
    text: string | vscode.LanguageModelChatRequestMessage,
    token: vscode.CancellationToken,
  ): Promise<number> {
    const input = typeof text === "string" ? text : inputOf([text]);
    if (input.length === 0) return 0;
    const { status } = this.#local;
    if (status.kind !== "ready" || !status.countsTokens) return estimate(input);
    return cancellable(token, async (signal) => {
      try {
        const count = await this.#count(model.id, input, signal);
        return typeof input === "string" ? Math.max(1, count - (await this.#frame(model.id, signal))) : count;
      } catch (error) {
        if (error instanceof vscode.CancellationError) throw error;
        return estimate(input);
      }
    });
  }

  async #count(model: string, input: string | ReturnType<typeof inputOf>, signal: AbortSignal): Promise<number> {
    return (await this.#local.client.responses.inputTokens.count({ model, input }, { signal })).input_tokens;
  }

  /** How many tokens a prompt has besides its text, measured with a text of one token. */
  async #frame(model: string, signal: AbortSignal): Promise<number> {
    const known = this.#frames.get(model);
    if (known !== undefined) return known;
    const frame = (await this.#count(model, "a", signal)) - 1;
    this.#frames.set(model, frame);
    return frame;
  }
}

function informationOf({ id, isApple }: ModelEntry, tools: boolean): vscode.LanguageModelChatInformation {
  return {
    id,
    name: id,
    family: id,
    version: "1",
    detail: "on this machine",
    tooltip: `${id}, run by fm-proxy on this machine. Nothing is sent over the network.`,
    ...(isApple ? MAX_TOKENS_OF_APPLE : MAX_TOKENS),
    capabilities: { imageInput: false, toolCalling: tools },
  };
}

/** What an event adds to the answer; null: nothing. */
function partOf(event: ResponseEvent): vscode.LanguageModelResponsePart | null {
  if (event.type === "response.output_text.delta") return new vscode.LanguageModelTextPart(event.delta);
  if (event.type !== "response.output_item.done" || event.item.type !== "function_call") return null;
  const { call_id: id, name, arguments: text } = event.item;
  return new vscode.LanguageModelToolCallPart(id, name, argumentsOf(name, text));
}

function argumentsOf(name: string, text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The answer was cut at its token limit.
  }
  throw new Error(`The model's call of the tool ${name} is not complete. Ask again, with fewer tools or a shorter text.`);
}

/** Converts an error to one of VS Code's kinds, with the sentence that says what to do. */
function modelError({ code, detail }: FmError): Error {
  if (code === "NOT_FOUND") return vscode.LanguageModelError.NotFound(detail);
  if (code === "GUARDRAIL") return vscode.LanguageModelError.Blocked(detail);
  return new Error(detail);
}

function estimate(input: string | ReturnType<typeof inputOf>): number {
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
