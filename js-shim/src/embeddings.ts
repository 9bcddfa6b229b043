// client.embeddings.
import { pick, withOptions } from "./stream.js";
import type {
  EmbeddingCreateParams,
  EmbeddingList,
  JsonObject,
  Operation,
  RequestOptions,
  Transport,
} from "./types.js";

/** `client.embeddings`: OpenAI's Embeddings API. */
export class Embeddings {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One vector for each text. */
  create(body: EmbeddingCreateParams & { encoding_format: "base64" }, options?: RequestOptions): Promise<EmbeddingList<string>>;
  create(body: EmbeddingCreateParams, options?: RequestOptions): Promise<EmbeddingList>;
  create(body: EmbeddingCreateParams, options: RequestOptions = {}): Promise<EmbeddingList<never>> {
    return withOptions(() => createEmbeddings(this.#transport, body), options);
  }
}

/** Vectors of texts. */
export function createEmbeddings(transport: Transport, body: JsonObject): Operation<EmbeddingList<never>> {
  return pick(transport.call("embeddings.create", body), (answer) => answer["embeddings"] as EmbeddingList<never>);
}
