import { FmError, toFmError } from "./errors.js";
import { PartialResponse } from "./partial.js";
import { EventStream, withSignal } from "./stream.js";
import type {
  Operation,
  RequestOptions,
  ResponseCreateParams,
  ResponseEvent,
  ResponseObject,
  Transport,
} from "./types.js";
import { isObject } from "./types.js";

/** The events of one streamed response. Iterate it once; `break` stops the request. */
export class ResponseStream extends EventStream<ResponseEvent, ResponseObject> {
  /** @internal */
  constructor(transport: Transport, body: ResponseCreateParams, options: RequestOptions) {
    super((push) => streamResponse(transport, body, push), options.signal);
  }

  /**
   * The whole response, once it is there; rejects as `create` does. It can be had with or without iterating.
   */
  finalResponse(): Promise<ResponseObject> {
    return this.final();
  }
}

/** `client.responses`: OpenAI's Responses API. */
export class Responses {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Answers with a stream of events; after a failure the stream's last events are followed by the error itself. */
  create(body: ResponseCreateParams & { stream: true }, options?: RequestOptions): ResponseStream;
  /** Answers with the whole response. Rejects with an FmError, which has what was produced in `response`. */
  create(body: ResponseCreateParams & { stream?: false | null }, options?: RequestOptions): Promise<ResponseObject>;
  create(body: ResponseCreateParams, options?: RequestOptions): Promise<ResponseObject> | ResponseStream;
  create(body: ResponseCreateParams, options: RequestOptions = {}): Promise<ResponseObject> | ResponseStream {
    if (body.stream === true) return this.stream(body, options);
    return withSignal(() => createResponse(this.#transport, body), options.signal);
  }

  /** The same as `create` with `stream: true`. */
  stream(body: ResponseCreateParams, options: RequestOptions = {}): ResponseStream {
    return new ResponseStream(this.#transport, { ...body, stream: true }, options);
  }

  /** Stops a response that is under way; answers with what was produced. */
  async cancel(id: string): Promise<ResponseObject> {
    const result = await this.#transport.call("responses.cancel", { id }).result;
    return (result["response"] ?? result["completion"]) as ResponseObject;
  }
}

/** One response, whole. */
export function createResponse(transport: Transport, body: ResponseCreateParams): Operation<ResponseObject> {
  const operation = transport.call("responses.create", body);
  const result = operation.result.then((answer) => answer["response"] as ResponseObject);
  return { result, cancel: () => operation.cancel() };
}

/**
 * One response, event by event. However it ends, a stream that has begun has exactly one terminal event: where the
 * helper could not send it any more, it is made here. Events always come before the result settles.
 */
export function streamResponse(
  transport: Transport,
  body: ResponseCreateParams,
  onEvent: (event: ResponseEvent) => void,
): Operation<ResponseObject> {
  const partial = new PartialResponse();
  const operation = transport.call("responses.create", body, {
    onNotification: ({ event }) => {
      if (isObject(event) && partial.observe(event as ResponseEvent)) onEvent(event as ResponseEvent);
    },
  });
  const fail = (error: FmError): FmError => {
    if (partial.open) partial.fail(error).forEach(onEvent);
    return error.response === undefined && partial.response !== undefined
      ? error.withPartial({ response: partial.response })
      : error;
  };
  const result = operation.result.then(
    (answer) => {
      if (partial.open) throw fail(new FmError("PROTOCOL_ERROR", "The helper did not end its stream."));
      return answer["response"] as ResponseObject;
    },
    (error: unknown) => {
      throw fail(toFmError(error));
    },
  );
  return { result, cancel: () => operation.cancel() };
}
