// Decodes gzip and deflate as bytes come, and stops what grows out of proportion.
import type * as Zlib from 'node:zlib'
import { WireError } from './errors.ts'
import type { ContentCoding } from './outbound-rules.ts'

/** Decoded bytes per encoded byte, once more than `RATIO_FREE_BYTES` have come out. JSON stays below 30. */
const RATIO_MAX = 100
const RATIO_FREE_BYTES = 1024 * 1024
const OUTPUT_CHUNK_BYTES = 64 * 1024

export interface InflateSink {
  data(chunk: Buffer): void
  end(): void
  fail(error: WireError): void
  /** The decoder is behind: stop reading until `resume`. */
  pause(): void
  resume(): void
}

/** One encoded body. */
export class Inflate {
  readonly #coding: Exclude<ContentCoding, 'identity'>
  readonly #sink: InflateSink
  #decoder: Zlib.Gunzip | Zlib.Inflate | Zlib.InflateRaw | undefined
  #encodedBytes = 0
  #decodedBytes = 0
  #over = false

  constructor(coding: Exclude<ContentCoding, 'identity'>, sink: InflateSink) {
    this.#coding = coding
    this.#sink = sink
  }

  push(chunk: Buffer): void {
    if (this.#over || chunk.length === 0) return
    this.#encodedBytes += chunk.length
    const decoder = (this.#decoder ??= this.#open(chunk[0] ?? 0))
    if (decoder.write(chunk)) return
    this.#sink.pause()
    decoder.once('drain', () => this.#sink.resume())
  }

  /** No more bytes come; the sink hears `end` when the last ones are decoded. */
  end(): void {
    if (this.#over) return
    if (this.#decoder !== undefined) return void this.#decoder.end()
    this.#over = true
    this.#sink.end()
  }

  drop(): void {
    this.#over = true
    this.#decoder?.destroy()
  }

  #open(firstByte: number): Zlib.Gunzip | Zlib.Inflate | Zlib.InflateRaw {
    const zlib = process.getBuiltinModule('node:zlib') as typeof Zlib
    const options = { chunkSize: OUTPUT_CHUNK_BYTES }
    // "deflate" means the zlib format, but some servers send it bare; the first byte tells (RFC 9110 8.4.1.2).
    const bare = (firstByte & 0x0f) !== 8
    const decoder =
      this.#coding === 'gzip'
        ? zlib.createGunzip(options)
        : bare
          ? zlib.createInflateRaw(options)
          : zlib.createInflate(options)
    decoder.on('data', (chunk: Buffer) => this.#decoded(chunk))
    decoder.on('end', () => {
      if (this.#over) return
      this.#over = true
      this.#sink.end()
    })
    decoder.on('error', (cause) =>
      this.#fail(
        new WireError('malformed', `The answer is not the ${this.#coding} that its headers say`, { cause, sent: true }),
      ),
    )
    return decoder
  }

  #decoded(chunk: Buffer): void {
    if (this.#over) return
    this.#decodedBytes += chunk.length
    if (this.#decodedBytes > RATIO_FREE_BYTES && this.#decodedBytes > this.#encodedBytes * RATIO_MAX)
      return this.#fail(
        new WireError(
          'too-large',
          `The answer unpacks to more than ${RATIO_MAX} times its size (${this.#encodedBytes} bytes)`,
          { sent: true },
        ),
      )
    this.#sink.data(chunk)
  }

  #fail(error: WireError): void {
    if (this.#over) return
    this.drop()
    this.#sink.fail(error)
  }
}
