// Bytes in pieces. Many small pieces are merged, so that a stream of single bytes costs bytes and not objects.

const SMALL_PIECES_MAX = 1_024
const SMALL_BYTES = 4_096
const NOTHING = Buffer.alloc(0)

/** Pieces are kept as they are given: a view keeps the buffer beneath it alive. The caller limits `length`. */
export class ByteList {
  #pieces: Buffer[] = []
  /** Pieces at the end that are small. */
  #small = 0
  length = 0

  add(piece: Buffer): void {
    if (piece.length === 0) return
    this.length += piece.length
    this.#pieces.push(piece)
    if (piece.length >= SMALL_BYTES) this.#small = 0
    else if (++this.#small === SMALL_PIECES_MAX) {
      this.#pieces.push(Buffer.concat(this.#pieces.splice(-SMALL_PIECES_MAX)))
      this.#small = 0
    }
  }

  /** All of them as one; without a copy if there is but one piece. */
  join(): Buffer {
    const only = this.#pieces[0]
    if (only === undefined) return NOTHING
    if (this.#pieces.length === 1) return only
    const whole = Buffer.concat(this.#pieces, this.length)
    this.#pieces = [whole]
    this.#small = 0
    return whole
  }

  clear(): void {
    if (this.length === 0) return
    this.#pieces = []
    this.#small = 0
    this.length = 0
  }
}
