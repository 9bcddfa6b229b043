// client.decisions.
import { pick, withOptions } from "./stream.js";
import type { Decision, DecisionCreateParams, JsonObject, Operation, RequestOptions, Transport } from "./types.js";

/** `client.decisions`: OpenAI's Decisions API. */
export class Decisions {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Answers questions about a text by how likely the model finds each possible answer; generates nothing. The probabilities are
   * the model's own, and nobody has calibrated them.
   */
  create(body: DecisionCreateParams, options: RequestOptions = {}): Promise<Decision> {
    return withOptions(() => createDecision(this.#transport, body), options);
  }
}

/** Answers to questions about a text. */
export function createDecision(transport: Transport, body: JsonObject): Operation<Decision> {
  return pick(transport.call("decisions.create", body), (answer) => answer["decision"] as unknown as Decision);
}
