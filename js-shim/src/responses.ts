// client.responses: the Responses API over the helper.
import { FmError, withOutputText } from "./errors.js";
import { PartialResponse, type AnyEvent } from "./partial.js";
import { EventStream, pending, pick, streamed, withoutOk, withOptions, type Pending } from "./stream.js";
import { toFmError } from "./thrown.js";
import type {
  CompactedResponse,
  DeletedResponse,
  InputItemList,
  InputItemListParams,
  InputTokenCount,
  JsonObject,
  Operation,
  RequestOptions,
  StreamRequestOptions,
  ResponseCompactParams,
  ResponseCreateParams,
  ResponseEvent,
  ResponseObject,
  ResponseRetrieveParams,
  Transport,
  WireEvent,
  WireResponse,
} from "./types.js";
import { isObject } from "./types.js";

/** The events of one streamed response. Iterate it once; `break` stops the request. */
export class ResponseStream extends EventStream<ResponseEvent, ResponseObject> {
  /** @internal */
  constructor(start: (push: (event: WireEvent) => void) => Operation<WireResponse>, options: StreamRequestOptions) {
    super((push) => pick(start((event) => push(withText(event))), withOutputText), options);
  }

  /** Resolves with the whole response at the end; rejects as `create` does. It works with and without iterating. */
  finalResponse(): Promise<ResponseObject> {
    return this.final();
  }
}

/** `client.responses`: OpenAI's Responses API. */
export class Responses {
  /** The items that a stored response was made from. */
  readonly inputItems: InputItems;
  /** The number of tokens that a request would have. */
  readonly inputTokens: InputTokens;
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
    this.inputItems = new InputItems(transport);
    this.inputTokens = new InputTokens(transport);
  }

  /**
   * Answers with a stream of events. If the request fails in the middle, the stream throws the error after its last events. An
   * awaited call resolves at the first event, or rejects if the request fails before that.
   */
  create(body: ResponseCreateParams & { stream: true }, options?: StreamRequestOptions): Pending<ResponseStream>;
  /** Answers with the whole response. Rejects with an FmError. Its `response` has the output before the failure. */
  create(body: ResponseCreateParams & { stream?: false | null }, options?: RequestOptions): Promise<ResponseObject>;
  create(body: ResponseCreateParams, options?: RequestOptions): Promise<ResponseObject | ResponseStream>;
  create(body: ResponseCreateParams, options: RequestOptions = {}): Promise<ResponseObject | ResponseStream> {
    if (body?.stream === true) return pending(this.stream(body, options));
    return withOptions(() => createResponse(this.#transport, body), options).then(withOutputText);
  }

  /** The same as `create` with `stream: true`, but returns the stream itself, without a promise. */
  stream(body: ResponseCreateParams, options: StreamRequestOptions = {}): ResponseStream {
    const params = streamed(body, options);
    return new ResponseStream((push) => streamResponse(this.#transport, params, push), options);
  }

  /** Answers with a stored response, or with its events from the start, or after `starting_after`. */
  retrieve(id: string, query: ResponseRetrieveParams & { stream: true }, options?: RequestOptions): Pending<ResponseStream>;
  /** Answers with a stored response in its present state. */
  retrieve(
    id: string,
    query?: ResponseRetrieveParams & { stream?: false },
    options?: RequestOptions,
  ): Promise<ResponseObject>;
  retrieve(
    id: string,
    query: ResponseRetrieveParams = {},
    options: RequestOptions = {},
  ): Promise<ResponseObject | ResponseStream> {
    if (query?.stream !== true) {
      return withOptions(() => retrieveResponse(this.#transport, id, query), options).then(withOutputText);
    }
    return pending(new ResponseStream((push) => streamRetrieved(this.#transport, id, query, push), options));
  }

  /** Forgets a stored response. */
  delete(id: string, options: RequestOptions = {}): Promise<DeletedResponse> {
    return withOptions(() => deleteResponse(this.#transport, id), options);
  }

  /** Stops a response that is in progress; answers with its output so far. */
  cancel(id: string, options: RequestOptions = {}): Promise<ResponseObject> {
    return withOptions(() => cancelResponse(this.#transport, id), options).then(withOutputText);
  }

  /** Shortens a conversation. The `output` of the answer replaces the conversation in the `input` of the next request. */
  compact(body: ResponseCompactParams, options: RequestOptions = {}): Promise<CompactedResponse> {
    return withOptions(() => compactResponse(this.#transport, body), options);
  }
}

/** `client.responses.inputItems`. */
export class InputItems {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One page of the items that a stored response was made from. */
  list(id: string, query: InputItemListParams = {}, options: RequestOptions = {}): Promise<InputItemList> {
    return withOptions(() => listInputItems(this.#transport, id, query), options);
  }
}

/** `client.responses.inputTokens`. */
export class InputTokens {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** How many tokens a request would have. Generates nothing. */
  count(body: ResponseCreateParams, options: RequestOptions = {}): Promise<InputTokenCount> {
    return withOptions(() => countInputTokens(this.#transport, body), options);
  }
}

/** Makes one response, as a whole. */
export function createResponse(transport: Transport, body: ResponseCreateParams): Operation<WireResponse> {
  return pick(transport.call("responses.create", body), responseOf);
}

/** A stored response in its present state. */
export function retrieveResponse(transport: Transport, id: string, query: JsonObject): Operation<WireResponse> {
  return pick(transport.call("responses.retrieve", { ...query, id }), responseOf);
}

/** Stops a response or a chat completion; answers with its output so far. */
export function cancelResponse(transport: Transport, id: string): Operation<WireResponse> {
  return pick(transport.call("responses.cancel", { id }), responseOf);
}

/** Forgets a stored response. */
export function deleteResponse(transport: Transport, id: string): Operation<DeletedResponse> {
  return pick(transport.call("responses.delete", { id }), (answer) => withoutOk(answer) as DeletedResponse);
}

/** One page of the items that a stored response was made from. */
export function listInputItems(transport: Transport, id: string, query: JsonObject): Operation<InputItemList> {
  const operation = transport.call("responses.input_items", { ...query, id });
  return pick(operation, (answer) => withoutOk(answer) as unknown as InputItemList);
}

/** How many tokens a request would have. */
export function countInputTokens(transport: Transport, body: JsonObject): Operation<InputTokenCount> {
  return pick(transport.call("responses.input_tokens", body), (answer) => withoutOk(answer) as InputTokenCount);
}

/** A shorter form of a conversation. */
export function compactResponse(transport: Transport, body: JsonObject): Operation<CompactedResponse> {
  return pick(transport.call("responses.compact", body), (answer) => withoutOk(answer) as unknown as CompactedResponse);
}

/** Converts an event to the form that the client's own streams have. */
function withText(event: WireEvent): ResponseEvent {
  return ("response" in event ? { ...event, response: withOutputText(event.response) } : event) as ResponseEvent;
}

function responseOf(answer: JsonObject): WireResponse {
  return (answer["response"] ?? answer["completion"]) as unknown as WireResponse;
}

/** Makes one response, event by event, as it comes. */
export function streamResponse(
  transport: Transport,
  body: ResponseCreateParams,
  onEvent: (event: WireEvent) => void,
): Operation<WireResponse> {
  return eventsOf(transport, "responses.create", body, onEvent);
}

/** Repeats the events of a stored response, and passes on those that are still to come. */
export function streamRetrieved(
  transport: Transport,
  id: string,
  query: JsonObject,
  onEvent: (event: WireEvent) => void,
): Operation<WireResponse> {
  return eventsOf(transport, "responses.retrieve", { ...query, id }, onEvent);
}

/**
 * A stream that has begun has exactly one terminal event, however it ends. If the helper can no longer send that event,
 * it is made here. Events always come before the result settles.
 */
function eventsOf(
  transport: Transport,
  method: string,
  params: JsonObject,
  onEvent: (event: WireEvent) => void,
): Operation<WireResponse> {
  const partial = new PartialResponse();
  const operation = transport.call(method, params, {
    onNotification: ({ event }) => {
      if (isObject(event) && partial.observe(event as AnyEvent)) onEvent(event as unknown as WireEvent);
    },
  });
  const fail = (error: FmError): FmError => {
    if (partial.open) partial.fail(error).forEach(onEvent);
    return partial.response === undefined ? error : error.withPartial({ response: partial.response });
  };
  const result = operation.result.then(
    (answer) => {
      if (partial.open) throw fail(new FmError("PROTOCOL_ERROR", "The helper did not end its stream."));
      return partial.response ?? responseOf(answer); // the result of a stream does not repeat the response of its last event
    },
    (error: unknown) => {
      throw fail(toFmError(error));
    },
  );
  return { result, cancel: () => operation.cancel() };
}
