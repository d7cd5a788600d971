// What a person pastes, or a program writes, while something else is waited for.
import type { Readable } from 'node:stream'

/** Longest line; what is longer is cut into several, so that nobody can fill the memory. In characters. */
const LINE_CHARS_MAX = 65_536

/** The lines of stdin, for as long as somebody wants them. */
export class StdinLines implements AsyncIterable<string>, Disposable {
  readonly #stdin: Readable
  readonly #lines: string[] = []
  #rest = ''
  #hasEnded = false
  #wake: () => void = () => {}

  /** @param stdin Opened as a stream only when it is needed: that takes a moment. */
  constructor(stdin: Readable = process.stdin) {
    this.#stdin = stdin
    stdin.setEncoding('utf8')
    stdin.on('data', this.#onData)
    stdin.once('end', this.#onEnd)
    stdin.once('error', this.#onEnd)
    stdin.resume() // a prompt before may have stopped it
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void> {
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) yield line
      else if (this.#hasEnded) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  /** Reads no further, so that the process can end. */
  [Symbol.dispose](): void {
    this.#stdin.off('data', this.#onData)
    this.#stdin.pause()
    this.#onEnd()
  }

  readonly #onData = (text: string): void => {
    const lines = (this.#rest + text).split(/\r\n|\r|\n/)
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > LINE_CHARS_MAX) lines.push(this.#takeRest())
    this.#lines.push(...lines)
    if (lines.length > 0) this.#wake()
  }

  readonly #onEnd = (): void => {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#rest !== '') this.#lines.push(this.#takeRest())
    this.#wake()
  }

  #takeRest(): string {
    const rest = this.#rest
    this.#rest = ''
    return rest
  }
}
