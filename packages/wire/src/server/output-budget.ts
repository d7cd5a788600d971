// Large answers that wait for slow readers, over all connections of an endpoint.
import type { ServerResponse } from 'node:http'

const COUNTED_BYTES_MIN = 64 * 1024

export class OutputBudget {
  #bytes = 0
  readonly bytesMax: number

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Bytes that are waiting. */
  get bytes(): number {
    return this.#bytes
  }

  /** Books an answer until its connection is done with it. False: it does not fit. Small ones are not counted. */
  take(response: ServerResponse, length: number): boolean {
    if (length < COUNTED_BYTES_MIN) return true
    if (this.#bytes + length > this.bytesMax) return false
    this.#bytes += length
    response.once('close', () => {
      this.#bytes -= length
    })
    return true
  }
}
