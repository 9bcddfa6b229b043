// client.models.
import type { PulledModel, PullOptions } from "./pull.js";
import { pick, withoutOk, withOptions } from "./stream.js";
import type {
  JsonObject,
  LoadedModel,
  Model,
  ModelList,
  ModelParams,
  Operation,
  RequestOptions,
  Transport,
  UnloadedModel,
} from "./types.js";

/** `client.models`. */
export class Models {
  readonly #transport: Transport;
  readonly #pull: (reference: string, options: PullOptions) => Promise<PulledModel>;

  /** @internal */
  constructor(transport: Transport, pull: (reference: string, options: PullOptions) => Promise<PulledModel>) {
    this.#transport = transport;
    this.#pull = pull;
  }

  /** All models that the helper can answer with. */
  list(options: RequestOptions = {}): Promise<ModelList> {
    return withOptions(() => listModels(this.#transport), options);
  }

  /** One of these models, by its id. */
  retrieve(id: string, options: RequestOptions = {}): Promise<Model> {
    return withOptions(() => retrieveModel(this.#transport, id), options);
  }

  /**
   * Loads a model before the first request for it; if no model is named, the default model. Resolves when the model is loaded,
   * and rejects if it can't be loaded. `signal` ends the load, unless a request waits for the model.
   */
  load(params: ModelParams = {}, options: RequestOptions = {}): Promise<LoadedModel> {
    return withOptions(() => useModel<LoadedModel>(this.#transport, "models.load", params), options);
  }

  /**
   * Downloads a model into the folder of this client's models, as `pullModel` does. After that, the client checks again what can
   * answer, so a client that had no model now has one. `onProgress` gets the number of received bytes. `signal` stops the
   * download; the same call later continues it.
   */
  pull(reference: string, options: PullOptions = {}): Promise<PulledModel> {
    return this.#pull(reference, options);
  }

  /** Frees the memory of a model. Rejects with the code OVERLOADED while the model has requests. */
  unload(params: ModelParams = {}, options: RequestOptions = {}): Promise<UnloadedModel> {
    return withOptions(() => useModel<UnloadedModel>(this.#transport, "models.unload", params), options);
  }
}

function useModel<Result>(transport: Transport, method: string, params: ModelParams): Operation<Result> {
  return pick(transport.call(method, params as JsonObject), (answer) => withoutOk(answer) as unknown as Result);
}

/** All models. */
export function listModels(transport: Transport): Operation<ModelList> {
  const operation = transport.call("models.list", {});
  return pick(operation, (answer) => withoutOk(answer) as unknown as ModelList);
}

/** One model. */
export function retrieveModel(transport: Transport, id: string): Operation<Model> {
  const operation = transport.call("models.retrieve", { id });
  return pick(operation, (answer) => withoutOk(answer) as unknown as Model);
}
