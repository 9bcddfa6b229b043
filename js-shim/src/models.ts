// client.models.
import { pick, withoutOk, withSignal } from "./stream.js";
import type { Model, ModelList, Operation, RequestOptions, Transport } from "./types.js";

/** `client.models`. */
export class Models {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All models that the helper can answer with. */
  list(options: RequestOptions = {}): Promise<ModelList> {
    return withSignal(() => listModels(this.#transport), options.signal);
  }

  /** One of them, by its id. */
  retrieve(id: string, options: RequestOptions = {}): Promise<Model> {
    return withSignal(() => retrieveModel(this.#transport, id), options.signal);
  }
}

/** A healthy helper answers at once. */
const TIMEOUT_MS = 10_000;

/** All models. */
export function listModels(transport: Transport): Operation<ModelList> {
  const operation = transport.call("models.list", {}, { timeoutMs: TIMEOUT_MS });
  return pick(operation, (answer) => withoutOk(answer) as unknown as ModelList);
}

/** One model. */
export function retrieveModel(transport: Transport, id: string): Operation<Model> {
  const operation = transport.call("models.retrieve", { id }, { timeoutMs: TIMEOUT_MS });
  return pick(operation, (answer) => withoutOk(answer) as unknown as Model);
}
