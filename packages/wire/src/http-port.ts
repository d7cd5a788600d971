// What the wire needs of an HTTP implementation: one exchange at a time with one origin. No rule lives behind this port; those are the door's (outbound.ts).
import type { WireError } from './errors.ts'

/** One request. */
export interface ExchangeRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query, as the server sees them. */
  readonly path: string
  /** Flat: name, value, name, value; names in lower case. The client adds `host` and `content-length`. */
  readonly headers: readonly string[]
  readonly body: string | undefined
  /** All headers are. Others are written in Latin-1. */
  readonly isAscii: boolean
}

/** Takes the answer. Exactly one of `end` and `fail` comes, and nothing after it; after `drop` nothing comes at all. */
export interface ExchangeSink {
  /** The final status. `header` looks a header up by its name in lower case; several of one name are joined with `, `. */
  head(status: number, header: (name: string) => string | undefined): void
  data(chunk: Buffer): void
  end(): void
  fail(error: WireError, facts: FailureFacts): void
}

/** What is known about a failed exchange. */
export interface FailureFacts {
  /** The bytes of the request had left: the server may have acted on them. False only where that is certain. */
  readonly sent: boolean
  /** It went over a connection that had served another exchange before, which the server may have closed meanwhile. */
  readonly reused: boolean
}

/** One exchange on its way. */
export interface Exchange {
  /** The bytes of the request have left, or are about to. */
  readonly sent: boolean
  /** Ends it; its connection is closed if the answer was not complete. Idempotent. */
  drop(): void
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
}

export interface HttpClient {
  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange
  /** Closes every connection, idle or not. Idempotent. */
  close(): void
}
