// Server-sent events on one HTTP response. A reader that does not read loses the connection, never memory.
import type { ServerResponse } from 'node:http'

const STREAM_HEADERS = ['content-type', 'text/event-stream', 'cache-control', 'no-cache', 'x-accel-buffering', 'no']

export class EventWriter {
  readonly #response: ServerResponse
  readonly #outputBytesMax: number

  /** The head leaves with the first event or comment. `extra`: further header lines, flat. */
  constructor(response: ServerResponse, outputBytesMax: number, extra: readonly string[] = []) {
    this.#response = response
    this.#outputBytesMax = outputBytesMax
    response.writeHead(200, [...STREAM_HEADERS, ...extra])
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded
  }

  /** One event; `text` has no line breaks. False: there is nobody to read it. */
  event(text: string, id?: string): boolean {
    return this.#write(id === undefined ? `data: ${text}\n\n` : `id: ${id}\ndata: ${text}\n\n`)
  }

  /** An event with an id and no data, from which the client can come back, and how long it should wait before. */
  prime(id: string, retryMs: number): boolean {
    return this.#write(`id: ${id}\nretry: ${retryMs}\ndata: \n\n`)
  }

  /** Keeps proxies and readers from taking a quiet stream for a dead one. */
  comment(): boolean {
    return this.#write(':\n\n')
  }

  #write(text: string): boolean {
    if (!this.isOpen) return false
    if (this.#response.writableLength > this.#outputBytesMax) {
      this.#response.destroy()
      return false
    }
    this.#response.write(text)
    return true
  }

  end(): void {
    if (this.isOpen) this.#response.end()
  }

  /** Drops the connection. */
  destroy(): void {
    this.#response.destroy()
  }
}
